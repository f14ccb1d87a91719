"""The report: static pages made of a study's JSON files, and of nothing else.

``models`` says what the files hold, ``reader`` reads them, ``blocks`` lays a case out block by block, ``matrix`` the
mutations as a heat map, ``cases`` decides how much of a long study fits on a page, ``plots`` draws what keys cost,
``catalogue`` speaks both languages, ``pages`` puts it all together. No module here imports the engine or the study.
"""

from __future__ import annotations

from mmkey.study.report.catalogue import LANGUAGES
from mmkey.study.report.pages import make_pages
from mmkey.study.report.reader import ResultsError, read_results

__all__ = ["LANGUAGES", "ResultsError", "make_pages", "read_results"]
