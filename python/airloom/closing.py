"""What is closed at the end of its `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Is itself in the block, and closed behind it."""

    @abstractmethod
    def close(self) -> None:
        """Ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
