"""Prints the public items of a crate, a line each, from rustdoc's JSON. Further files are of crates whose
modules the first one shows as its own."""

import json
import sys

NAMES = {"module": "mod", "function": "fn", "constant": "const", "assoc_const": "const",
         "assoc_type": "type", "type_alias": "type"}


def kind_of(item):
    return next(iter(item["inner"]))


class Surface:
    def __init__(self, doc, shown):
        self.index = doc["index"]
        self.paths = doc["paths"]
        self.shown = {surface.own_name(): surface for surface in shown}
        self.root = doc["root"]
        self.items = set()

    def own_name(self):
        return self.index[str(self.root)]["name"]

    def list(self):
        self.name(self.root, [], self.own_name())
        return sorted(self.items)

    def module_of_another(self, number, path):
        """A module of a crate that is shown, under the name that it has here."""
        target = self.paths.get(str(number), {"path": [""]})["path"]   # what is hidden has none
        other = self.shown.get(target[0])
        if other is None:
            self.add("use", path)
            return
        own = next(number for number, item in other.paths.items() if item["path"] == target)
        other.name(own, path[:-1], path[-1])
        self.items |= other.items

    def walk(self, number, path):
        item = self.index.get(str(number))
        if item is None or item["visibility"] != "public":
            return
        if kind_of(item) != "use":
            self.name(number, path, item["name"])
            return
        use = item["inner"]["use"]
        target = self.index.get(str(use["id"]))
        if target is None:
            self.module_of_another(use["id"], path + [use["name"]])
        elif use["is_glob"]:
            for child in target["inner"]["module"]["items"]:
                self.walk(child, path)
        else:
            self.name(use["id"], path, use["name"])

    def name(self, number, path, name):
        item = self.index[str(number)]
        kind, path = kind_of(item), path + [name]
        inner = item["inner"][kind]
        self.add(kind, path)
        if kind == "module":
            for child in inner["items"]:
                self.walk(child, path)
        elif kind == "trait":
            self.members(inner["items"], path)
        else:
            for number in inner.get("impls", []):
                own = self.index.get(str(number), {}).get("inner", {}).get("impl")
                if own and own["trait"] is None and not own["is_synthetic"]:
                    self.members(own["items"], path)

    def members(self, numbers, path):
        for number in numbers:
            item = self.index.get(str(number))
            if item and item["visibility"] in ("public", "default"):
                self.add(kind_of(item), path + [item["name"]])

    def add(self, kind, path):
        self.items.add(("::".join(path), NAMES.get(kind, kind)))


first, *others = [json.load(open(file)) for file in sys.argv[1:]]
for path, kind in Surface(first, [Surface(other, []) for other in others]).list():
    print(kind, path)
