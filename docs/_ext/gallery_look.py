"""The look of the gallery's figures; examples need nothing of it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt


def reset_look(gallery_conf: object, file: str) -> None:
    """Called by the gallery before every example."""
    plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
