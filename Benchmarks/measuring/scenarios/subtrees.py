"""Directories that appear with files in them: each file must be handled exactly once."""

import os
import subprocess
import tarfile

from ..figures import Budget, tally
from ..peers import FOLLOWING
from ..rounds import Scenario
from ..systems import Alight, Reference

SHELL = """cd "$1" && for number in $(seq 1 "$2"); do
    mkdir -p "$number/b/c/d" && echo x >"$number/b/c/d/shell$number"
done"""


class Subtrees(Scenario):
    name = "subtrees"
    parts = ("shell", "deep", "cp", "tar", "mv")
    columns = (
        ("shell", "mkdir -p in a shell"), ("deep", "mkdir in C"), ("cp", "cp -r"), ("tar", "tar x"), ("mv", "mv"),
        ("once", "once"), ("lost", "lost, all runs"), ("twice", "twice, all runs"), ("strays", "others"))

    def folders(self):
        return self.size(200, 20)

    def repetitions(self):
        return self.options.runs or self.size(5, 1)

    def files(self):
        """Returns the number of files in a tree that appears at once: ten in each directory."""
        return self.size(1000, 100)

    def title(self):
        words = "New subtrees: %d folders made one by one, with a file at once; trees of %d files; how many were missed"
        return words % (self.folders(), self.files())

    def systems(self):
        return [Reference, Alight, *(FOLLOWING.get(peer, peer) for peer in self.peers())]

    def measure(self, place, system):
        system.start()
        place.wait_ready(system)
        total, missed = {}, {}
        for part in self.parts:
            directory = os.path.join(place.watched, "by-" + part)
            os.mkdir(directory)
            place.wait_quiet(system, 0, 5)
            place.set_mark()
            expected = getattr(self, "by_" + part)(place, directory)
            place.wait_quiet(system, len(expected), 20)
            counts = tally([action.name for action in place.actions()], expected)
            missed[part] = counts["lost"]
            for key in ("once", "lost", "twice", "strays"):
                total[key] = total.get(key, 0) + counts[key]
        return total | missed

    def by_shell(self, _place, directory):
        subprocess.run(["bash", "-c", SHELL, "-", directory, str(self.folders())], check=True)
        return ["shell%d" % number for number in range(1, self.folders() + 1)]

    def by_deep(self, place, directory):
        return place.arrive("deep", directory, self.folders(), "deep")

    def tree(self, place, part):
        """Creates a tree beside the watched directory; returns it and the names of its files."""
        top, names = os.path.join(place.aside, part), []
        for number in range(self.files()):
            directory = os.path.join(top, "a%d" % (number // 100), "b%d" % (number // 10))
            os.makedirs(directory, exist_ok=True)
            names.append("%s%06d" % (part, number))
            with open(os.path.join(directory, names[-1]), "w", encoding="ascii") as file:
                file.write("data\n")
        return top, names

    def by_cp(self, place, directory):
        top, names = self.tree(place, "cp")
        subprocess.run(["cp", "-r", top, directory], check=True)
        return names

    def by_tar(self, place, directory):
        top, names = self.tree(place, "tar")
        archive = os.path.join(place.aside, "tree.tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(top, "tree")
        subprocess.run(["tar", "-x", "-f", archive, "-C", directory], check=True)
        return names

    def by_mv(self, place, directory):
        top, names = self.tree(place, "mv")
        os.rename(top, os.path.join(directory, "tree"))
        return names

    def budgets(self, system):
        return [Budget("lost", "lost = 0", most=0), Budget("twice", "twice = 0", most=0)] if system is Alight else []
