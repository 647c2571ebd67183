"""Downloads through pooch: into the cache folder, resumed after a break, with a progress bar.

The sources publish no checksums. The first download is trusted and its SHA-256 written beside it;
later reads are checked against that, and `load` always checks the published shape.
"""

from __future__ import annotations

import hashlib
import sys
import urllib.error
import urllib.request
from importlib import import_module
from pathlib import Path
from typing import Any

from dpsparse.exceptions import ParameterError
from papers_data.registry import Dataset

_BLOCK = 1 << 20


class ResumingDownloader:
    """A pooch downloader that keeps what has arrived and asks only for the rest."""

    def __init__(self, part: Path, *, progress: bool = False, timeout: float = 60.0) -> None:
        self.part = part
        self.progress = progress
        self.timeout = timeout

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        self.part.parent.mkdir(parents=True, exist_ok=True)
        have = self.part.stat().st_size if self.part.exists() else 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                resumed = response.status == 206
                total = int(response.headers.get("Content-Length") or 0)
                self._receive(response, "ab" if resumed else "wb", have if resumed else 0, total)
        except urllib.error.HTTPError as error:
            if not (error.code == 416 and have):  # 416: nothing is left to fetch
                raise
        self._deliver(output_file)

    def _receive(self, response: Any, mode: str, done: int, total: int) -> None:
        bar = _bar(done, done + total) if self.progress else None
        with self.part.open(mode) as file:
            while block := response.read(_BLOCK):
                file.write(block)
                if bar is not None:
                    bar.update(len(block))
        if bar is not None:
            bar.close()

    def _deliver(self, output_file: Any) -> None:
        with self.part.open("rb") as file:
            if hasattr(output_file, "write"):
                while block := file.read(_BLOCK):
                    output_file.write(block)
                self.part.unlink()
                return
        self.part.replace(output_file)


def fetch(dataset: Dataset, folder: Path) -> Path:
    """The local path of `dataset`, downloaded into `folder` if it is not there yet."""
    try:
        pooch = import_module("pooch")
    except ImportError:
        raise ParameterError("Downloads need the package pooch: pip install pooch.") from None
    if dataset.home is None:
        raise ParameterError(f"{dataset.name} has no public home to download from.")
    ending = Path(dataset.home).suffix if dataset.home.endswith((".bz2", ".xz")) else ""
    name = dataset.file.removesuffix(".xz") + ending
    note = folder / f"{name}.sha256"
    known = note.read_text().strip() if note.exists() else None
    downloader = ResumingDownloader(folder / f"{name}.part", progress=sys.stderr.isatty())
    path = Path(
        pooch.retrieve(
            dataset.home, known_hash=known, fname=name, path=folder, downloader=downloader
        )
    )
    if known is None:
        with path.open("rb") as file:
            note.write_text(hashlib.file_digest(file, "sha256").hexdigest() + "\n")
    return path


def _bar(done: int, total: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(initial=done, total=total or None, unit="B", unit_scale=True)
