"""Page sets: the pages that `http-client` loads, as files. Made of a model, of a HAR file of a visit, or of a folder.

>>> from airloom import page_sets
>>> news = page_sets.news()
>>> len(news.pages), news.pages[0].objects[0].server
(135, 'www')
"""

from airloom.page_sets.folder import from_folder, to_folder
from airloom.page_sets.har import from_har
from airloom.page_sets.page_set import Page, PageObject, PageSet, read
from airloom.page_sets.synthetic import news

__all__ = ["Page", "PageObject", "PageSet", "from_folder", "from_har", "news", "read", "to_folder"]
