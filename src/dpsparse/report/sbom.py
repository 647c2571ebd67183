"""A bill of materials of the installed distribution: CycloneDX 1.5 JSON from the metadata of what is installed."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from dpsparse.exceptions import DPSparseError


def sbom(*, extras: tuple[str, ...] = ()) -> dict[str, Any]:
    """What this installation consists of: dpsparse and every distribution it requires, with versions and licences.

    Parameters
    ----------
    extras : tuple of str
        Optional parts to count, for instance ``("cli",)``.

    Examples
    --------
    >>> from dpsparse.report import sbom
    >>> bill = sbom()
    >>> bill["bomFormat"], bill["metadata"]["component"]["name"]
    ('CycloneDX', 'dpsparse')
    >>> {"numba", "numpy", "scipy"} <= {part["name"] for part in bill["components"]}
    True
    """
    found: dict[str, metadata.Distribution] = {}
    edges: dict[str, list[str]] = {}
    _collect("dpsparse", set(extras), found, edges)
    root = found.pop("dpsparse")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": _component(root, "library"),
        },
        "components": [_component(found[name], "library") for name in sorted(found)],
        "dependencies": [
            {
                "ref": _reference(found.get(name, root)),
                "dependsOn": sorted(_reference(found[n]) for n in needs),
            }
            for name, needs in sorted(edges.items())
        ],
    }


def _collect(
    name: str,
    extras: set[str],
    found: dict[str, metadata.Distribution],
    edges: dict[str, list[str]],
) -> None:
    try:
        from packaging.requirements import Requirement
    except ImportError as error:
        raise DPSparseError(
            "The bill of materials needs packaging: pip install 'dpsparse[cli]'."
        ) from error
    if name in found:
        return
    found[name] = distribution = metadata.distribution(name)
    edges[name] = []
    for text in distribution.requires or []:
        need = Requirement(text)
        wanted = need.marker is None or any(
            need.marker.evaluate({"extra": e}) for e in ("", *extras)
        )
        key = _normal(need.name)
        if not wanted:
            continue
        if key == "dpsparse":  # an extra that names other extras of ours
            extras = extras | need.extras
            continue
        try:
            metadata.distribution(key)
        except metadata.PackageNotFoundError:
            continue  # required by a marker that does not hold here, or not installed
        edges[name].append(key)
        _collect(key, set(need.extras), found, edges)


def _component(distribution: metadata.Distribution, kind: str) -> dict[str, Any]:
    about: Any = distribution.metadata
    out: dict[str, Any] = {
        "type": kind,
        "bom-ref": _reference(distribution),
        "name": _normal(about["Name"]),
        "version": distribution.version,
        "purl": _reference(distribution),
    }
    licence = about.get("License-Expression") or _classified(about.get_all("Classifier") or [])
    if licence:
        out["licenses"] = [{"license": {"name": licence}}]
    return out


def _classified(classifiers: list[str]) -> str:
    return "; ".join(c.rsplit(" :: ", 1)[-1] for c in classifiers if c.startswith("License :: OSI"))


def _reference(distribution: metadata.Distribution) -> str:
    return f"pkg:pypi/{_normal(distribution.metadata['Name'])}@{distribution.version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
