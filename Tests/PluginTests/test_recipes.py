"""Runs each recipe of README.md and docs/, and each rule that `alight new` writes, on real files, and checks the results.

    python3 -m unittest discover -s Tests/PluginTests -p test_recipes.py -v

ALIGHT names the program, .build/debug/alight if it isn't set. RECIPE='docs/plugins.md films' runs one recipe, and
RECIPE=copy the rule of `alight new --use copy`. A table has an entry for each recipe, by its page and the name of its
rule: the files at the start, and those that must exist afterwards. A new recipe or built-in handler needs an entry.
"""

import concurrent.futures
import fnmatch
import gzip
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import tarfile
import unittest
import zipfile

import recipe_support
from recipe_support import Desktop, Receiver
from page_runner import MACHINE
from support import NAMES, PLUGINS, SEARCH, SYSTEM_PATH, pdf
from test_docs import ALIGHT, PAGES, blocks, is_configuration

# These pages have an example for each key, with paths and programs that do not exist; test_docs.py only loads them.
REFERENCE = {"docs/rules.md", "docs/explain.md"}
# The modification time of the existing files, in UTC.
MTIME = 1772600767  # 2026-03-04 05:06:07


def recipes():
    """Returns the rules files of the recipes, by page and name of the first rule."""
    found = {}
    for page in PAGES:
        if page != "README.md" and not page.startswith("docs/") or page in REFERENCE:
            continue
        for language, line, text in blocks(page):
            if language == "yaml" and re.search(r"^rules:", text, re.M) and not is_configuration(text):
                key = page, re.search(r"^ +- name: (\S+)", text, re.M)[1]
                if key in found:
                    raise AssertionError(f"{page}:{line}: the page has two recipes '{key[1]}'")
                found[key] = text
    return found


# Existing files


def as_tar(names, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def as_zip(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def source_image(*arguments):
    """Returns an image of 600 by 400 pixels, created on first use."""
    return lambda: recipe_support.source_image(*arguments)


def source_video(suffix):
    return lambda: recipe_support.source_video(suffix)


def testdata(*names):
    with open(os.path.join(PLUGINS, *names), "rb") as file:
        return file.read()


JPG, PNG = source_image(".jpg", "jpegsave"), source_image(".png", "pngsave")
ZIP, TAR = as_zip({"hello.txt": b"hello"}), as_tar({"sub/hello.txt": b"hello"})
PDF = pdf("a page")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# Expected files


class Input(str):
    """The content of the existing file with this name."""


class Link(str):
    """A symbolic link to this target."""


def image(kind, width=256):
    """Expects an image of that format and width in pixels."""
    def check(path):
        loader = subprocess.run(["vipsheader", "-f", "vips-loader", path], capture_output=True, text=True).stdout
        size = subprocess.run(["vipsheader", "-f", "width", path], capture_output=True, text=True).stdout
        return kind in loader and int(size) == width
    return check


def video(path):
    done = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", path],
                          capture_output=True, text=True)
    return "h264" in done.stdout


def searchable(word):
    def check(path):
        return word in subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True).stdout
    return check


def contains(*names):
    """Expects an archive with these members."""
    def check(path):
        listed = subprocess.run(["bsdtar", "-tf", path], capture_output=True, text=True).stdout.split("\n")
        return {name.rstrip("/") for name in listed if name} == set(names)
    return check


def text(pattern):
    def check(path):
        with open(path, encoding="utf-8") as file:
            return re.search(pattern, file.read(), re.M) is not None
    return check


def index(word, count):
    """Expects an index in which the command `search` finds the word in that number of files."""
    def check(path):
        # Without an option, it must read the default database of the plugin.
        done = subprocess.run([SEARCH, word], capture_output=True, text=True,
                              env={"PATH": SYSTEM_PATH, "HOME": path.partition("/.local/")[0]})
        return done.stdout.count("\n") == count
    return check


def trashed(name):
    return {f".local/share/Trash/files/{os.path.basename(name)}": Input(name),
            f".local/share/Trash/info/{os.path.basename(name)}.trashinfo": text(r"^Path=")}


class Recipe:
    """The existing files of a recipe, and its expected results.

    - files: the existing files, by name; a name that ends in a slash is a directory
    - created: the new files, by name, where `*` matches anything: a content, an `Input`, a `Link`, or a function of the
      path
    - removed: the names of removed files
    - status: the exit status of `alight run --once`; 5 if a file is expected to fail
    - output: regular expressions that match the output
    - sent: functions that match the requests to a webhook, in any order
    - shown: strings in the desktop notifications
    - check: a function of the home directory
    - replace: pairs of strings to replace in the rules
    """

    def __init__(
            self, files, created=None, *, removed=(), status=0, output=(), sent=(), shown=(), check=None, replace=()):
        self.files, self.created, self.removed, self.status = files, created or {}, set(removed), status
        self.output, self.sent, self.shown, self.check, self.replace = output, sent, shown, check, replace


def subjects(*names):
    """Matches the requests of a webhook about these files."""
    return [(lambda request, name=name: json.loads(request.body).get("subject") == name) for name in names]


def readable(home):
    return [stat.S_IMODE(os.stat(os.path.join(home, "site", name)).st_mode) for name in ("a.html", "x", "x/b.png")] == [
        0o644, 0o755, 0o644]


def tagged(home):
    path = os.path.join(home, "letters/invoice 7.pdf")
    return os.getxattr(path, "user.xdg.tags") == b"invoice,2026" and "user.xdg.tags" not in os.listxattr(
        os.path.join(home, "letters/note.pdf"))


THUMBNAILS = {"Pictures/inbox/sea.jpg": JPG, "Pictures/inbox/2026/chart.png": PNG}
NOTES = {"Documents/inbox/a.md": b"the lighthouse", "Documents/inbox/b.txt": b"a lighthouse"}

TABLE = {
    ("README.md", "thumbnails"): Recipe(
        {**THUMBNAILS, "Pictures/inbox/raw.heic": source_image(".avif", "heifsave", "--compression", "av1")},
        {"Pictures/thumbs/sea.jpg.webp": image("webp"), "Pictures/thumbs/2026/chart.png.webp": image("webp"),
         "Pictures/thumbs/raw.heic.webp": image("webp")}),
    ("README.md", "unpack"): Recipe(
        {"Downloads/a.zip": ZIP, "Downloads/b.tar.gz": TAR},
        {"Downloads/a/hello.txt": b"hello", "Downloads/b/sub/hello.txt": b"hello",
         **trashed("Downloads/a.zip"), **trashed("Downloads/b.tar.gz")},
        removed=["Downloads/a.zip", "Downloads/b.tar.gz"]),
    ("README.md", "search"): Recipe(
        {"Documents/a.md": b"the lighthouse", "Documents/old/b.txt": b"a lighthouse"},
        {".local/share/alight/reindex.db": index("lighthouse", 2)}),

    ("docs/actions.md", "gallery"): Recipe(
        {"photos/a.jpg": b"a", "photos/2026/b.png": b"b"}, {"photos.list": text(r" 1 a\.jpg$")}),
    ("docs/plugins.md", "thumbnails"): Recipe(
        {**THUMBNAILS, "Pictures/inbox/letter.pdf": PDF, "Pictures/inbox/-rf \n/film.mp4": source_video(".mp4")},
        {"Pictures/thumbs/sea.jpg.webp": image("webp"), "Pictures/thumbs/2026/chart.png.webp": image("webp"),
         "Pictures/thumbs/letter.pdf.webp": image("webp"), "Pictures/thumbs/-rf \n/film.mp4.webp": image("webp", 160)}),
    ("docs/plugins.md", "reindex"): Recipe(
        {**NOTES, "Documents/inbox/c.html": b"<p>the light<b>house</b>"},
        {".local/share/alight/reindex.db": index("lighthouse", 3)}),
    ("docs/plugins.md", "checksums"): Recipe(
        {"archive/a b.txt": b"hello", "archive/c/d.bin": b"\0"},
        {"archive/a b.txt.sha256": text(sha256(b"hello")), "archive/c/d.bin.sha256": text(sha256(b"\0"))}),
    ("docs/plugins.md", "films"): Recipe(
        {"Videos/inbox/a.avi": source_video(".avi"), "Videos/inbox/b c.mkv": source_video(".mkv")},
        {"Videos/a.mp4": video, "Videos/b c.mp4": video}),
    ("docs/plugins.md", "scans"): Recipe(
        {"Scans/a letter.png": testdata("ocr", "testdata", "a letter.png"),
         "Scans/b.pdf": lambda: recipe_support.scanned(testdata("ocr", "testdata", "a letter.png"))},
        {"Documents/scans/a letter.pdf": searchable("lighthouse"), "Documents/scans/b.pdf": searchable("lighthouse")}),
    ("docs/plugins.md", "mirror"): Recipe(
        {"Notes/a/b.txt": b"note", "Notes/c.md": b"note"}, {"Mirror/notes/a/b.txt": b"note", "Mirror/notes/c.md": b"note"}),
    ("docs/plugins.md", "uploads"): Recipe(
        {"Uploads/clean.txt": b"dear friend", "Uploads/infected.bin": b"dear alight-plague",
         "signatures/test.ndb": b"Test.Plague:0:*:" + b"alight-plague".hex().encode() + b"\n"},
        {"Checked/clean.txt": b"dear friend", "Quarantine/infected.bin.*[0-9a-f]": b"dear alight-plague",
         "Quarantine/infected.bin.*.json": text("Test.Plague")},
        removed=["Uploads/clean.txt", "Uploads/infected.bin"], status=5, output=["infected: Test.Plague"],
        replace=[("/var/lib/clamav/", "~/signatures/")]),

    ("docs/handlers.md", "where-the-name-says"): Recipe(
        {"in/acme_7.pdf": b"7", "in/plain.pdf": b"p"}, {"srv/clients/acme/inbox/acme_7.pdf": b"7"},
        removed=["in/acme_7.pdf"]),
    ("docs/handlers.md", "keep-each-version"): Recipe(
        {"drafts/a.md": b"a", "drafts/x/b.md": b"b"},
        {"versions/a.md-20260304-050607": b"a", "versions/x/b.md-20260304-050607": b"b"}),
    ("docs/handlers.md", "by-month"): Recipe(
        {"scans/a.pdf": PDF, "scans/b c.PDF": b"b"}, {"archive/2026/03/a.pdf": PDF, "archive/2026/03/b c.PDF": b"b"},
        removed=["scans/a.pdf", "scans/b c.PDF"]),
    ("docs/handlers.md", "newest-photos"): Recipe(
        {"photos/a.jpg": b"a", "photos/x/b.jpg": b"b"},
        {"by-day/2026-03-04/a.jpg": Link("../../photos/a.jpg"), "by-day/2026-03-04/b.jpg": Link("../../photos/x/b.jpg")}),
    ("docs/handlers.md", "with-the-year"): Recipe(
        {"papers/a.pdf": b"a", "papers/b-2025.pdf": b"b"}, {"papers/a-2026.pdf": b"a"}, removed=["papers/a.pdf"]),
    ("docs/handlers.md", "old-installers"): Recipe(
        {"downloads/a.deb": b"a", "downloads/b.AppImage": b"b", "downloads/c.txt": b"c"},
        {**trashed("downloads/a.deb"), **trashed("downloads/b.AppImage")},
        removed=["downloads/a.deb", "downloads/b.AppImage"]),
    ("docs/handlers.md", "empty-cache"): Recipe(
        {"cache/a.tmp": b"a", "cache/x/b.tmp": b"b", "cache/c.txt": b"c"}, removed=["cache/a.tmp", "cache/x/b.tmp"]),
    ("docs/handlers.md", "ready-markers"): Recipe(
        {"export/a.csv": b"a", "export/b c.csv": b"b"}, {"export/a.csv.done": b"", "export/b c.csv.done": b""}),
    ("docs/handlers.md", "readable-for-the-web"): Recipe(
        {"site/a.html": b"a", "site/x/b.png": b"b"}, check=readable),
    ("docs/handlers.md", "pack-projects"): Recipe(
        {"projects/one/a.txt": b"a", "projects/two/x/b.bin": b"b"},
        {"packed/one.tar.zst": contains("one", "one/a.txt"),
         "packed/two.tar.zst": contains("two", "two/x", "two/x/b.bin")}),
    ("docs/handlers.md", "pack-logs"): Recipe(
        {"logs/a.log": b"a", "logs/b c.log": b"b"}, {"packed/logs-*.tar.gz": contains("a.log", "b c.log")}),
    ("docs/handlers.md", "deliveries"): Recipe(
        {"in/a.zip": ZIP, "in/b.tar.gz": TAR},
        {"deliveries/a/hello.txt": b"hello", "deliveries/b/sub/hello.txt": b"hello",
         **trashed("in/a.zip"), **trashed("in/b.tar.gz")}, removed=["in/a.zip", "in/b.tar.gz"]),
    ("docs/handlers.md", "sums-of-images"): Recipe(
        {"images/a.iso": b"a", "images/b.iso": b"b"},
        {"images/SHA256SUMS": f"{sha256(b'a')}  a.iso\n{sha256(b'b')}  b.iso\n".encode()}),
    ("docs/handlers.md", "check-then-file"): Recipe(
        {"in/a.iso": b"a", "in/b.iso": b"b", "in/SHA256SUMS": f"{sha256(b'a')}  a.iso\n{sha256(b'x')}  b.iso\n".encode()},
        {"good/a.iso": b"a"}, removed=["in/a.iso"], status=5, output=["b.iso: failed"]),
    ("docs/handlers.md", "tag-invoices"): Recipe(
        {"letters/invoice 7.pdf": b"7", "letters/note.pdf": b"n"}, check=tagged),
    ("docs/handlers.md", "big-files"): Recipe(
        {"drop/a.iso": b"12345", "drop/x/b.txt": b"1"}, output=["created a.iso, 5 bytes", "created x/b.txt, 1 bytes"]),
    ("docs/handlers.md", "tell-of-scans"): Recipe(
        {"scans/a.pdf": b"a", "scans/b c.PDF": b"bc"}, shown=["a.pdf, 1 bytes", "b c.PDF, 2 bytes"]),
    ("docs/handlers.md", "tell-the-shop"): Recipe(
        {"orders/4711.xml": b"a", "orders/b c.xml": b"b"}, sent=subjects("4711.xml", "b c.xml")),
    ("docs/handlers.md", "tell-the-chat"): Recipe(
        {"in/a.txt": b"a", "in/b.png": b"bc"},
        sent=[lambda request: json.loads(request.body) == {"text": "a.txt is there, 1 bytes"},
              lambda request: json.loads(request.body) == {"text": "b.png is there, 2 bytes"}]),

    ("docs/actions.md", "thumbnails"): Recipe(
        {"photos/a.jpg": JPG, "photos/x/b.png": PNG},
        {"thumbs/a.jpg.webp": image("webp", 128), "thumbs/x/b.png.webp": image("webp", 128)}),
    ("docs/actions.md", "compress"): Recipe(
        {"logs/a.log": b"a", "logs/b c.log": b"b"},
        {"logs/a.log.gz": lambda path: gzip.open(path).read() == b"a", "logs/b c.log.gz": lambda path: gzip.open(path).read() == b"b"}),
    ("docs/actions.md", "checksums"): Recipe(
        {"iso/a.iso": b"a", "iso/b c.iso": b"b"},
        {"iso/a.iso.sha256": f"{sha256(b'a')}\n".encode(), "iso/b c.iso.sha256": f"{sha256(b'b')}\n".encode()}),
    ("docs/actions.md", "file-and-tell"): Recipe(
        {"in/a.pdf": b"a", "in/b c.PDF": b"b"},
        {"kept/a.pdf": b"a", "kept/b c.PDF": b"b", "done/20*/a.pdf": b"a", "done/20*/b c.PDF": b"b"},
        removed=["in/a.pdf", "in/b c.PDF"]),
    ("docs/jobs.md", "scans"): Recipe(
        {"Scans/letter.pdf": b"a", "Scans/receipt.pdf": b"b"}, status=5,
        output=["letter.pdf: succeeded", "receipt.pdf: failed.*page 2 can't be read"]),
    ("docs/migrating.md", "thumbnails"): Recipe(
        {"in/a.jpg": JPG, "in/b.png": PNG}, {"in/small-a.webp": image("webp"), "in/small-b.webp": image("webp")}),
    ("docs/migrating.md", "tests"): Recipe(
        {"src/a.c": b"a", "src/x/b.h": b"b", "Makefile": b"test:\n\techo ran >>tested\n"}, {"tested": b"ran\n"}),
    ("docs/migrating.md", "desktop"): Recipe(
        {"Desktop/a.pdf": b"a" * 1_100_000, "Desktop/small.pdf": b"b"}, {"Documents/PDF/a.pdf": Input("Desktop/a.pdf")},
        removed=["Desktop/a.pdf"]),
    ("docs/migrating.md", "press"): Recipe(
        {"hot/in/a.pdf": b"a", "hot/in/b c.PDF": b"b", "spool/": None},
        {"spool/a.pdf": b"a", "spool/b c.PDF": b"b", "hot/done/a.pdf": b"a", "hot/done/b c.PDF": b"b"},
        removed=["hot/in/a.pdf", "hot/in/b c.PDF"]),
    ("docs/undo.md", "sort"): Recipe(
        {"Inbox/a.pdf": b"a", "Inbox/b c.PDF": b"b"}, {"Sorted/2026/a.pdf": b"a", "Sorted/2026/b c.PDF": b"b"},
        removed=["Inbox/a.pdf", "Inbox/b c.PDF"]),
    ("docs/plugin-protocol.md", "texts"): Recipe(
        {"inbox/a.txt": b"one two three", "inbox/b c.TXT": b"one two three four"},
        {"inbox/a.txt.sha256": text(sha256(b"one two three")), "inbox/b c.TXT.sha256": text(sha256(b"one two three four"))}),
}


INBOX = {"inbox/a.txt": b"the lighthouse", "inbox/b c.png": PNG}
REMOVED = ["inbox/a.txt", "inbox/b c.png"]
FILED = {"inbox/done/a.txt": Input("inbox/a.txt"), "inbox/done/b c.png": Input("inbox/b c.png")}
SUMS = {"inbox/a.txt.sha256": text(sha256(b"the lighthouse")), "inbox/b c.png.sha256": text("^[0-9a-f]{64}")}
ARCHIVES = {"inbox/a.zip": ZIP, "inbox/b c.tar.gz": TAR}


def links_to(name):
    return lambda path: os.path.islink(path) and os.path.samefile(path, os.path.join(path.partition("/inbox/")[0], "inbox", name))


def all_of(check):
    """Applies a check of a path to both files of the inbox."""
    return lambda home: all(check(os.path.join(home, name)) for name in INBOX)


# The results of the rules of `alight new inbox --use NAME`.
NEW = {
    "archive": Recipe(INBOX, {"inbox/done/a.txt.tar.gz": contains("a.txt"), "inbox/done/b c.png.tar.gz": contains("b c.png")}),
    "checksum": Recipe(INBOX, {"inbox/SHA256SUMS": text(f"^{sha256(b'the lighthouse')}  a.txt$")}),
    "copy": Recipe(INBOX, FILED),
    "delete": Recipe(INBOX, removed=REMOVED),
    "digest": Recipe(INBOX, SUMS),
    "extract": Recipe(ARCHIVES, {"inbox/done/a/hello.txt": b"hello", "inbox/done/b c/sub/hello.txt": b"hello"}),
    "link": Recipe(INBOX, {"inbox/done/a.txt": links_to("a.txt"), "inbox/done/b c.png": links_to("b c.png")}),
    "log": Recipe(INBOX, output=["created .*a.txt", "created .*b c.png"]),
    "move": Recipe(INBOX, FILED, removed=REMOVED),
    "notify": Recipe(INBOX, shown=["inbox/a.txt", "inbox/b c.png"]),
    "ocr": Recipe(
        {"inbox/a letter.png": testdata("ocr", "testdata", "a letter.png"),
         "inbox/b.pdf": lambda: recipe_support.scanned(testdata("ocr", "testdata", "a letter.png"))},
        {"inbox/searchable/a letter.png.pdf": searchable("lighthouse"), "inbox/searchable/b.pdf": searchable("lighthouse")}),
    "reindex": Recipe(
        {"inbox/a.txt": b"the lighthouse", "inbox/b c.md": b"lighthouse"},
        {".local/share/alight/reindex.db": index("lighthouse", 2)}),
    "rename": Recipe(
        INBOX, {"inbox/a-2026-03-04.txt": Input("inbox/a.txt"), "inbox/b c-2026-03-04.png": Input("inbox/b c.png")},
        removed=REMOVED),
    "scan": Recipe(
        {**INBOX, "inbox/infected.bin": b"alight-plague",
         "signatures/test.ndb": b"Test.Plague:0:*:" + b"alight-plague".hex().encode() + b"\n"},
        {"quarantine/infected.bin.*[0-9a-f]": b"alight-plague", "quarantine/infected.bin.*.json": text("Test.Plague")},
        removed=["inbox/infected.bin"], status=5, replace=[("# database: /var/lib/clamav/", "database: signatures/")]),
    "set-permissions": Recipe(INBOX, check=all_of(lambda path: stat.S_IMODE(os.stat(path).st_mode) == 0o640)),
    "sync": Recipe(INBOX, {"mirror/a.txt": Input("inbox/a.txt"), "mirror/b c.png": Input("inbox/b c.png")}),
    "tag": Recipe(INBOX, check=all_of(lambda path: os.getxattr(path, "user.xdg.tags") == b"inbox")),
    "thumbnail": Recipe(
        {"inbox/a.jpg": JPG, "inbox/b c.png": PNG}, {"inbox/thumbnails/a.jpg": image("jpeg"), "inbox/thumbnails/b c.png": image("png")}),
    "touch": Recipe(INBOX, check=all_of(lambda path: os.stat(path).st_mtime > MTIME)),
    "transcode": Recipe(
        {"inbox/a.avi": source_video(".avi"), "inbox/b c.mkv": source_video(".mkv")},
        {"inbox/converted/a.avi.mp4": video, "inbox/converted/b c.mkv.mp4": video}),
    "trash": Recipe(INBOX, {**trashed("inbox/a.txt"), **trashed("inbox/b c.png")}, removed=REMOVED),
    "webhook": Recipe(INBOX, sent=subjects("a.txt", "b c.png")),
}


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class RunTestCase(unittest.TestCase):
    """Runs rules in a temporary home directory, and compares the results."""

    def run_all(self, table, rules):
        """Runs the recipes that have rules; `rules` are strings, or functions of the home that return one."""
        # The runs mostly wait.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = {key: pool.submit(self.run_recipe, table[key], text) for key, text in rules.items() if key in table}
        for key, run in runs.items():
            with self.subTest(key):
                run.result()

    def run_recipe(self, recipe, rules):
        with recipe_support.Home() as home:
            rules = rules(home) if callable(rules) else rules
            if lacking := home.missing_programs(rules):
                self.skipTest(f"needs {lacking}")
            self.run_in(home, recipe, rules)

    def run_in(self, home, recipe, rules):
        contents = {}
        for name, data in recipe.files.items():
            contents[name] = data() if callable(data) else data
            home.put(name, contents[name], MTIME)
        before = home.tree()
        with Receiver() as receiver, Desktop(home.root, bool(recipe.shown)) as desktop:
            # Absolute paths are moved into the home, and other hosts are replaced by the receiver.
            for old, new in recipe.replace:
                self.assertIn(old, rules)
                rules = rules.replace(old, new)
            rules = MACHINE.sub(home.root + "/", rules)
            rules = re.sub(r"https://[\w.-]+(?=/)", receiver.address, rules)
            rules = re.sub(r"settle: \S+$", "settle: 100ms", rules, flags=re.M)
            variables = {name: home.root if name == "HOME" else "whatever" for name in re.findall(r"\$\{env:(\w+)\}", rules)}
            home.put("rules.yaml", rules.encode())
            done = home.run("run", "--once", "--journal", ":memory:", "rules.yaml", **variables, **desktop.variables)
            printed = done.stdout + done.stderr
            self.assertEqual(done.returncode, recipe.status, printed)
            for pattern in recipe.output:
                self.assertRegex(printed, pattern)
            remaining = list(receiver.requests)
            for check in recipe.sent:
                matching = [request for request in remaining if check(request)]
                self.assertEqual(len(matching), 1, receiver.requests)
                remaining.remove(matching[0])
            self.assertEqual(remaining, [])
            self.assertEqual(len(desktop.shown()), len(recipe.shown))
            for each in recipe.shown:
                self.assertTrue(any(each in shown for shown in desktop.shown()), desktop.shown())
        after = home.tree() - {"rules.yaml"}
        self.assertEqual(before - after, recipe.removed, printed)
        made, matched = after - before, set()
        for pattern, expected in recipe.created.items():
            found = [name for name in made if name not in matched and (name == pattern or fnmatch.fnmatchcase(name, pattern))]
            self.assertEqual(len(found), 1, f"{pattern}: {sorted(made)}\n{printed}")
            matched.add(found[0])
            self.is_as_expected(home.path(found[0]), expected, contents)
        self.assertEqual(made, matched, printed)
        self.assertTrue(recipe.check is None or recipe.check(home.root), printed)

    def is_as_expected(self, path, expected, contents):
        if isinstance(expected, Link):
            self.assertEqual(os.readlink(path), expected)
        elif callable(expected):
            self.assertTrue(expected(path), f"{path} is not as expected")
        else:
            with open(path, "rb") as file:
                self.assertEqual(file.read(), contents[expected] if isinstance(expected, Input) else expected)


class RecipeTests(RunTestCase):

    def test_each_recipe_has_an_entry_and_each_entry_a_recipe(self):
        self.assertEqual(set(TABLE), set(recipes()))

    def test_each_shipped_plugin_has_a_recipe_on_its_page(self):
        used = {re.search(r"use: ([\w-]+)", text)[1] for (page, _), text in recipes().items() if page == "docs/plugins.md"}
        self.assertEqual(used, set(NAMES))

    def test_each_recipe_has_the_expected_results(self):
        chosen = {key: text for key, text in recipes().items() if os.environ.get("RECIPE") in (None, " ".join(key))}
        self.run_all(TABLE, chosen)


class NewRuleTests(RunTestCase):

    def handlers(self):
        with recipe_support.Home() as home:
            done = home.run("new", "--use", "nosuchhandler")
            listed = home.run("plugins", "list", "--json")
        built_in = re.search(r"built-in handlers: ([\w, -]+);", done.stderr)[1].split(", ")
        return {*built_in, *(json.loads(line)["name"] for line in listed.stdout.splitlines())} - {"sidecar", "words"}

    def test_each_handler_and_plugin_has_an_entry(self):
        self.assertEqual(set(NEW), self.handlers())

    def test_each_rule_of_new_passes_check_and_has_the_expected_results(self):
        def write(name):
            def rules(home):
                done = home.run("new", "inbox", "--use", name, "--output", "new.yaml")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("warning", done.stderr)
                checked = home.run("check", "new.yaml")
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), name)
                with open(home.path("new.yaml"), encoding="utf-8") as file:
                    text = file.read()
                os.unlink(home.path("new.yaml"))
                return text
            return rules
        self.run_all(NEW, {name: write(name) for name in NEW if os.environ.get("RECIPE") in (None, name)})

    def test_each_parameter_in_a_comment_of_new_passes_check(self):
        checked = 0
        with recipe_support.Home() as home:
            for name in NEW:
                lines = home.run("new", "inbox", "--use", name).stdout.splitlines()
                described = json.loads(home.run("plugins", "describe", name, "--json").stdout)
                # Parameters that require others cannot be set alone.
                tied = described.get("parameters", {}).get("dependentRequired", {})
                for number, line in enumerate(lines):
                    if not (key := re.match(r" +# ([a-z_]+): \S", line)) or key[1] in tied or line.startswith("    # "):
                        continue
                    checked += 1
                    with self.subTest(f"{name}: {line.strip()}"):
                        rules = "\n".join([*lines[:number], line.replace("# ", "", 1), *lines[number + 1:]])
                        home.put("rules.yaml", rules.replace("      # with:", "      with:").encode())
                        variables = {each: "whatever" for each in re.findall(r"\$\{env:(\w+)\}", rules)}
                        done = home.run("check", "rules.yaml", **variables)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(checked, 50)


if __name__ == "__main__":
    unittest.main()
