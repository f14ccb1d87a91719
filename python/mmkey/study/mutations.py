"""All mutations, in the order in which they are shown."""

from __future__ import annotations

from mmkey.study.mutations_picture import CONTAINER, PICTURE, PROCESSING
from mmkey.study.mutations_prompt import LAYOUT, SCOPE, TEXT, VIDEO

GROUPS = ("container", "picture", "processing", "layout", "video", "text", "scope")
MUTATIONS = tuple(
    sorted((*CONTAINER, *PICTURE, *PROCESSING, *LAYOUT, *VIDEO, *TEXT, *SCOPE), key=lambda m: GROUPS.index(m.group))
)
