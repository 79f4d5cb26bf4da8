"""A real page in a real browser over a modelled link: `airloom load`.

```
Chromium --- radio (any bearer) --- gateway --- internet (wireline) --- nginx
 mobile                      nothing, Squid or our proxies              origin
```

Every page is loaded in a laboratory of its own, in real time. What the browser saw (page time, requests, a filmstrip)
stands beside what the link did at the same time.
"""

from airloom.page_load.measure import Loaded, load_page
from airloom.page_load.ways import WAYS

__all__ = ["WAYS", "Loaded", "load_page"]
