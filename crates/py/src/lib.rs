//! The Python module `airloom._core`, one file per class.
