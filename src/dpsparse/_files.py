"""Files out: whole or not at all, never by accident, never on top of an input."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from dpsparse.exceptions import ModelFileError


def check_output(
    path: Path, overwrite: bool, inputs: Iterable[str | os.PathLike[str] | None] = ()
) -> None:
    """Refuse a place that cannot be written, before anything is read or spent.

    No file of `inputs` is ever replaced, by any name or link that leads to it.
    """
    for source in inputs:
        if source is not None and _same_file(path, source):
            raise ModelFileError(f"{path} is the input {source}; choose another name.")
    _refuse_dangling(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ModelFileError(f"{path} cannot be written: there is no such folder.")
    if path.exists() and not path.is_file():
        raise ModelFileError(f"{path} cannot be written: it is not a regular file.")
    if path.exists() and not overwrite:
        raise _taken(path)
    try:
        probe = _new_file(path.resolve().parent)
        probe.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def write_whole(path: Path, content: bytes, overwrite: bool) -> None:
    """The name appears when the content is complete and on the disk; a link stays a link to the file it has."""
    _refuse_dangling(path)
    target = path.resolve()
    try:
        part = _new_file(target.parent)
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if not overwrite:
                _claim(part, target)
            else:
                os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def keep_elsewhere(name: str, content: bytes) -> Path | None:
    """Where a file of this name was written: in a new folder of ours, in the first place that takes it; None where none
    does. For results that are paid for and whose own place failed."""
    for place in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        try:
            folder = Path(tempfile.mkdtemp(prefix="dpsparse-", dir=place))
        except OSError:
            continue
        try:
            write_whole(folder / name, content, overwrite=False)
            return folder / name
        except ModelFileError:
            folder.rmdir()
    return None


def _refuse_dangling(path: Path) -> None:
    """A link to nothing would place the file where whoever made the link wants it."""
    if path.is_symlink() and not path.exists():
        raise ModelFileError(
            f"{path} is a link to a file that does not exist; remove the link, or name the file itself."
        )


def _claim(part: Path, target: Path) -> None:
    """Rename that fails where `target` exists."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: take the name first, then fill it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(part, target)


def _new_file(folder: Path) -> Path:
    """An empty file of a name of its own, with the permissions the user's umask gives."""
    path = folder / f".dpsparse-{secrets.token_hex(8)}.part"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return path


def _same_file(path: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samefile(path, source)
    except (OSError, ValueError):  # one of them does not exist; the ledger may be a URL
        return False


def _taken(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path} exists; choose another name, or replace it with --overwrite (in Python overwrite=True)."
    )


def _unwritable(path: Path, error: OSError) -> ModelFileError:
    return ModelFileError(f"{path} cannot be written: {error.strerror or 'the disk refuses'}.")
