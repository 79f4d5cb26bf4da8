"""What HTTP proxies do with messages that two parsers may understand differently: `airloom validate http-shapes`.

```
shapes ──> client ──> proxy (ours, Squid) ──> origin that notes every octet
                                     strict parser over both sides ──> verdict
```

A proxy is safe with a shape if it refuses it, or if what it passes on has one meaning only, and as many requests reach
the origin as the proxy gives answers.
"""

from airloom.validate.http_shapes.judge import Found, Seen, chosen, judge, judge_all
from airloom.validate.http_shapes.shapes import REQUESTS, RESPONSES, Shape

__all__ = ["REQUESTS", "RESPONSES", "Found", "Seen", "Shape", "chosen", "judge", "judge_all"]
