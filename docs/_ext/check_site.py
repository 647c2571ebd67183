"""Internal links, reachability and search of a built site: `python docs/_ext/check_site.py docs/_build/html`.

Every link inside the site must lead to a file and an anchor that exist, every page must be reached from
the home page, every public estimator must be found by the search index, a newcomer must find five answers
within three clicks, and ten searches must lead to the page that answers them.
"""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dpsparse

# What somebody who knows scikit-learn and not this library looks for: the page, and words that answer the question.
NEWCOMER = {
    "fit text": ("preparation.html", "DPVectorizer"),
    "protect persons": ("persons.html", "groups="),
    "price ten fits": ("budget.html", "Ten fits on the same rows"),
    "check a guarantee": ("how_we_test.html", "dpsparse audit"),
    "cite": ("project.html", "@software"),
}

# What somebody types into the search box, and the page that has to come first.
SEARCHES = {
    "missing values": "preparation",
    "imbalanced": "choosing_method",
    "excel": "files",
    "how accurate": "choosing_epsilon",
    "which estimator": "choosing_method",
    "several rows per person": "persons",
    "out of memory": "scaling",
    "share a budget": "budget",
    "is it really private": "sharp_edges",
    "cite": "project",
}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (
                (tag, name) in (("a", "href"), ("img", "src"), ("link", "href"), ("script", "src"))
            ):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.anchors.add(value)


def complaints(site: Path) -> list[str]:
    """What is wrong with the site, one line each."""
    pages = {
        path: _Page(path.read_text("utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    found, graph = [], {}
    for path, page in pages.items():
        graph[path] = set()
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            if url.fragment and "_modules" in path.parts:
                continue  # listings name objects by their first home, pages by the public one
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{path.relative_to(site)}: no such file: {link}")
            elif target in pages:
                graph[path].add(target)
                if url.fragment and unquote(url.fragment) not in pages[target].anchors:
                    found.append(f"{path.relative_to(site)}: no such place: {link}")
    reached, todo = set(), [site / "index.html"]
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            todo += graph[path]
    lonely = {p.relative_to(site).as_posix() for p in pages.keys() - reached}
    found += [f"{page}: no way to it from the home page" for page in sorted(lonely - {"404.html"})]
    index = (site / "searchindex.js").read_text("utf-8")
    for name in dpsparse.__all__:
        if not name.startswith("_") and not re.search(
            rf"\b{re.escape(name)}\b", index, re.IGNORECASE
        ):
            found.append(f"the search index does not know {name}")
    return found


def way(site: Path, target: str) -> list[str]:
    """The shortest way by clicks from the home page to a page, both included."""
    ways, todo = {"index.html": ["index.html"]}, ["index.html"]
    while todo and target not in ways:
        page = todo.pop(0)
        for link in _Page((site / page).read_text("utf-8")).links:
            url = urlsplit(link)
            to = (site / page).parent / unquote(url.path)
            if url.scheme or not url.path or to.suffix != ".html" or not to.exists():
                continue
            name = to.resolve().relative_to(site).as_posix()
            if name not in ways:
                ways[name] = [*ways[page], name]
                todo.append(name)
    return ways.get(target, [])


def newcomer(site: Path) -> list[str]:
    """The questions that take more than three clicks, or whose page does not answer them."""
    found = []
    for question, (page, words) in NEWCOMER.items():
        steps = way(site, page)
        if not 2 <= len(steps) <= 4:
            found.append(f"newcomer: {question}: {len(steps) - 1} clicks")
        text = re.sub(r"<[^>]+>", "", (site / page).read_text("utf-8"))
        if words not in unescape(text):
            found.append(f"newcomer: {page} does not say {words!r}")
        print(f"newcomer: {question}: {' > '.join(steps)}")
    return found


def searches(site: Path) -> list[str]:
    """The searches that do not lead to their page. Sphinx ranks a main index entry that equals the query highest."""
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = []
    for query, page in SEARCHES.items():
        entries = index["indexentries"].get(query, [])
        first = [index["docnames"][number] for number, _, is_main in entries if is_main]
        titles = [
            title.lower()
            for title, places in index["alltitles"].items()
            if any(index["docnames"][number] == page for number, _ in places)
        ]
        if first != [page]:
            found.append(f"search: {query!r} leads to {first}, not to {page}")
        if not any(query in title for title in titles):
            found.append(f"search: no heading of {page} has the words {query!r}")
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    wrong = complaints(folder) + newcomer(folder) + searches(folder)
    sys.stdout.write(
        "".join(f"{line}\n" for line in wrong) or "site: links, ways and search are in order\n"
    )
    sys.exit(bool(wrong))
