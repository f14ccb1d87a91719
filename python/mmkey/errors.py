"""Every error that mmkey raises of its own: one base, and one class for each thing a caller can do about it."""

from __future__ import annotations

__all__ = ["CapacityError", "HoldError", "InvalidRequest", "MmkeyError", "UnsupportedType"]


def shown(value: object) -> str:
    """A wrong value for a message: its repr in one line, cut short."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an int of more than 4300 digits, or a repr that fails
        return f"this {type(value).__name__}"
    return " ".join(text.splitlines()) if len(text) <= 80 else f"{' '.join(text[:80].splitlines())}..."


class MmkeyError(Exception):
    """The base of all errors of this package."""


class _FieldError(MmkeyError):
    """An error about one field; its text is ``field: problem``, in one line."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        #: The place of the offending value, as in ``items[1].patch_grid``.
        self.field = field
        self._problem = problem

    def within(self, place: str) -> _FieldError:
        """The same problem under the place where whoever caught it knows the value to stand."""
        return type(self)(place, self._problem)

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.field, self._problem)


class InvalidRequest(_FieldError, ValueError):
    """A value that no key can be made of; ``field`` names it, the text says what is allowed."""


class UnsupportedType(_FieldError, TypeError):
    """An object of a type that no value can be made of; ``field`` names it, the text says what is allowed."""


class CapacityError(MmkeyError):
    """A bounded structure has no room left, and what is held leaves none to make. Nothing was changed."""


class HoldError(MmkeyError, RuntimeError):
    """A hold on cached blocks that is not to be had, or to be given back: stale, released already, or in the way.

    Nothing was changed.
    """
