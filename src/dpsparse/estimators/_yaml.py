"""Parameters survive `yaml.safe_load(yaml.dump(model.get_params()))` where PyYAML is installed.

Tools that check outputs write the parameters of a model into a YAML file and read them back safely. `Domain` and
`PrivateCount` are written as plain mappings under a tag of their own, and a `Ledger` as null: a budget belongs to its
place and is not copied into a file.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dpsparse.domain import Domain
from dpsparse.nonzeros import PrivateCount
from dpsparse.privacy import Ledger


def register() -> None:
    """Teach PyYAML, if it is there, the two records and to leave ledgers out."""
    try:
        import yaml
    except ImportError:
        return

    def add(kind: Any) -> None:
        tag = f"!dpsparse.{kind.__name__}"

        def write(dumper: Any, value: Any) -> Any:
            parts = {field.name: getattr(value, field.name) for field in fields(kind)}
            plain = {
                n: list(part) if isinstance(part, tuple) else part for n, part in parts.items()
            }
            return dumper.represent_mapping(tag, plain)

        def read(loader: Any, node: Any) -> Any:
            return kind(**loader.construct_mapping(node, deep=True))

        for dumper in (yaml.Dumper, yaml.SafeDumper):
            dumper.add_representer(kind, write)
        for loader in (yaml.SafeLoader, yaml.FullLoader):
            loader.add_constructor(tag, read)

    add(Domain)
    add(PrivateCount)
    for dumper in (yaml.Dumper, yaml.SafeDumper):
        dumper.add_representer(Ledger, lambda out, _: out.represent_none(None))
