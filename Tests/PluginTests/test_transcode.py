"""Tests of the plugin `transcode`, with clips that ffmpeg makes."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support import HOSTILE_NAMES, PLUGINS, SYSTEM_PATH, PluginTestCase, alight_plugin, exact, needs_programs


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments], check=True, env={"PATH": SYSTEM_PATH})


@needs_programs("transcode")
class TranscodeTests(PluginTestCase):
    plugin = os.path.realpath(os.path.join(PLUGINS, "transcode", "transcode"))

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="alight-clips-")
        cls.addClassCleanup(directory.cleanup)
        cls.clips = {}
        video = ["-f", "lavfi", "-i", "testsrc=size=161x91:rate=10:duration=2"]
        sound = ["-f", "lavfi", "-i", "sine=440:duration=2:sample_rate=16000"]
        for name, arguments in {
                "film.avi": [*video, *sound, "-c:v", "mjpeg", "-c:a", "pcm_s16le"],
                "silent.mkv": [*video, "-c:v", "mjpeg"],
                "tone.wav": [*sound]}.items():
            path = os.path.join(directory.name, name)
            ffmpeg(*arguments, path)
            with open(path, "rb") as file:
                cls.clips[name] = file.read()

    def transcode(self, clip, to, preset, name=None, **more):
        data = self.clips[clip] if isinstance(clip, str) else clip
        path = self.write(b"in/" + (name or os.fsencode(clip if isinstance(clip, str) else "clip")), data)
        return self.run_plugin(
            self.request([self.event(path)], {"to": alight_plugin.json_path(self.path(to)), "preset": preset, **more}))

    def streams(self, path):
        done = subprocess.run(
            ["ffprobe", "-v", "error", "-show_entries", "format=duration:stream=codec_name,width,height", "-of", "json",
             b"file:" + path], capture_output=True, check=True)
        described = json.loads(done.stdout)
        return sorted(each["codec_name"] for each in described["streams"]), float(described["format"]["duration"]), described

    def test_every_preset(self):
        for preset, ending, codecs in (
                ("mp4-h264", b"mp4", ["aac", "h264"]), ("mkv-h264", b"mkv", ["aac", "h264"]),
                ("webm-vp9", b"webm", ["opus", "vp9"]), ("mp3", b"mp3", ["mp3"]), ("m4a-aac", b"m4a", ["aac"]),
                ("opus", b"opus", ["opus"]), ("flac", b"flac", ["flac"]), ("wav", b"WAV", ["pcm_s16le"])):
            with self.subTest(preset):
                target = b"out/film." + ending
                response = self.transcode("film.avi", target, preset)
                self.assertEqual(response["outcome"], "succeeded", response)
                self.assertEqual(response["outputs"], [os.fsdecode(self.path(target))])
                found, duration, _ = self.streams(self.path(target))
                self.assertEqual(found, codecs)
                self.assertAlmostEqual(duration, 2, delta=0.3)
                self.assertEqual(response["values"]["bytes"], os.path.getsize(self.path(target)))
        self.assertEqual(len(os.listdir(self.path(b"out"))), 8)

    def test_height_only_shrinks(self):
        for height, size in ((None, (160, 90)), (1080, (162, 90)), (121, (162, 90))):
            more = {"height": height} if height else {}
            response = self.transcode("silent.mkv", b"out/a.mp4", "mp4-h264", **more)
            self.assertLessEqual(abs(response["values"]["width"] - size[0]), 2, response)
            self.assertEqual(response["values"]["height"], size[1])
        self.assertEqual(self.streams(self.path(b"out/a.mp4"))[0], ["h264"])

    def test_hostile_names_of_source_and_destination(self):
        for name in HOSTILE_NAMES[2:9] + [b"concat:a|b", b"x%03d.png", b"http:"]:
            with self.subTest(name=name):
                response = self.transcode("tone.wav", b"out %d \xe9/" + name + b".flac", "flac", name=name)
                self.assertEqual(response["outcome"], "succeeded", response)
                self.assertEqual([exact(each) for each in response["outputs"]], [self.path(b"out %d \xe9/" + name + b".flac")])
        self.assertEqual(len(os.listdir(self.path(b"out %d \xe9"))), 10)

    def test_a_truncated_or_damaged_file_replaces_nothing(self):
        self.write(b"out/a.flac", b"old")
        tone = self.clips["tone.wav"]
        cases = {
            "cut off": tone[:len(tone) // 2], "empty": b"", "text": b"hello", "noise": random.Random(1).randbytes(10000),
            "playlist": b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
            "concat": b"ffconcat version 1.0\nfile /etc/passwd\n",
        }
        for title, data in cases.items():
            with self.subTest(title):
                response = self.transcode(data, b"out/a.flac", "flac", tolerance=0.5)
                self.assertEqual(response["outcome"], "failed", response)
                self.assertIn(response["code"], ("not-media", "damaged", "bad-result"))
        self.assertEqual(os.listdir(self.path(b"out")), [b"a.flac"])
        with open(self.path(b"out/a.flac"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_a_video_shorter_than_its_header_specifies_fails(self):
        path = self.path(b"whole.mkv")
        ffmpeg("-f", "lavfi", "-i", "sine=440:duration=20", "-c:a", "pcm_s16le", path)
        with open(path, "rb") as file:
            data = file.read()
        response = self.transcode(data[:len(data) * 3 // 4], b"out/a.flac", "flac")
        self.assertEqual(response["outcome"], "failed", response)
        self.assertIn(response["code"], ("bad-result", "damaged"))
        self.assertEqual(os.listdir(self.path(b"out")), [])

    def test_missing_streams_are_named(self):
        for clip, to, preset, code in (
                ("tone.wav", b"out/a.mp4", "mp4-h264", "no-video"), ("silent.mkv", b"out/a.mp3", "mp3", "no-audio")):
            response = self.transcode(clip, to, preset)
            self.assertEqual((response["outcome"], response["code"]), ("failed", code))

    def test_a_cover_is_not_a_video(self):
        path = self.path(b"album.mp3")
        ffmpeg("-f", "lavfi", "-i", "sine=440:duration=1", "-f", "lavfi", "-i", "testsrc=size=64x64:duration=1", "-map", "0",
               "-map", "1", "-frames:v", "1", "-disposition:v", "attached_pic", "-id3v2_version", "3", path)
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(self.transcode(data, b"out/a.mp4", "mp4-h264")["code"], "no-video")
        self.assertEqual(self.transcode(data, b"out/a.opus", "opus")["outcome"], "succeeded")

    def test_invalid_parameters_and_destinations_fail(self):
        for to, preset, more in ((b"out/a.mp3", "flac", {}), (b"out/a", "mp3", {}), (b"out/a.mp3", "mp9", {}),
                                 (b"out/a.mp3", "mp3", {"audio_kbits": 5})):
            response = self.transcode("tone.wav", to, preset, **more)
            self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))
        response = self.transcode("tone.wav", b"in/tone.wav", "wav")
        self.assertEqual((response["outcome"], response["code"]), ("failed", "same-file"))
        os.makedirs(self.path(b"folder.wav"))
        self.assertEqual(self.transcode("tone.wav", b"folder.wav", "wav")["code"], "eisdir")
        self.assertEqual(self.all_files(), [b"in/tone.wav"])

    def test_special_and_missing_files_are_skipped(self):
        os.makedirs(self.path(b"in/folder"))
        os.mkfifo(self.path(b"in/pipe"))
        os.symlink(b"nowhere", self.path(b"in/link"))
        for name in (b"folder", b"pipe", b"link", b"missing"):
            request = self.request([self.event(self.path(b"in", name))], {"to": "/nowhere/a.mp3", "preset": "mp3"})
            self.assertEqual(self.run_plugin(request)["outcome"], "skipped")

    def test_progress_is_reported(self):
        path = self.path(b"long.wav")
        ffmpeg("-f", "lavfi", "-i", "sine=440:duration=900:sample_rate=48000", path)
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out/a.opus")), "preset": "opus"})
        child = self.start(request)
        _, errors = child.communicate(timeout=120)
        progress = [json.loads(line)["progress"] for line in errors.splitlines() if line.startswith(b"{")]
        self.assertTrue(progress, errors)
        self.assertEqual(progress, sorted(progress))
        self.assertLessEqual(progress[-1], 1)

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"in/a.wav", self.clips["tone.wav"])
        request = self.request(
            [self.event(path)], {"to": os.fsdecode(self.path(b"out/a.mp3")), "preset": "mp3"}, dry_run=True)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"in/a.wav"])

    def test_a_second_run_changes_nothing(self):
        states = []
        for _ in range(2):
            response = self.transcode("tone.wav", b"out/a.flac", "flac")
            with open(self.path(b"out/a.flac"), "rb") as file:
                states.append((response, file.read(), self.all_files()))
        self.assertEqual(states[0], states[1])

    def test_sigterm_at_any_time_leaves_no_temporary_files(self):
        path = self.write(b"in/film.avi", self.clips["film.avi"])
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out/a.webm")), "preset": "webm-vp9"})
        chance = random.Random(7)
        for _ in range(8):
            child = self.start(request)
            time.sleep(chance.uniform(0.02, 0.6))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            self.assertLessEqual(set(self.all_files()), {b"in/film.avi", b"out/a.webm"})
            if os.path.exists(self.path(b"out/a.webm")):
                self.assertAlmostEqual(self.streams(self.path(b"out/a.webm"))[1], 2, delta=0.3)

    def test_a_full_disk_is_retried(self):
        disk = self.path(b"disk")
        os.mkdir(disk)
        script = 'mount -t tmpfs -o size=16k tmpfs "$0" && "$@" && ls -A "$0" >&2'
        prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, os.fsdecode(disk)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespaces here to mount a small disk in")
        path = self.write(b"in/a.wav", self.clips["tone.wav"])
        request = self.request([self.event(path)], {"to": os.fsdecode(os.path.join(disk, b"a.wav")), "preset": "wav"})
        child = self.start(request, prefix=prefix)
        output, errors = child.communicate(timeout=60)
        response = json.loads(output)
        self.assertEqual((response["outcome"], response["code"]), ("retry", "resources"), response)
        self.assertEqual(errors, b"")

    def test_without_ffmpeg_it_names_the_package(self):
        tools = self.path(b"bin")
        os.mkdir(tools)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH), os.path.join(tools, b"python3"))
        path = self.write(b"in/a.wav", self.clips["tone.wav"])
        request = self.request([self.event(path)], {"to": "/nowhere/a.mp3", "preset": "mp3"})
        response = self.run_plugin(request, path=os.fsdecode(tools))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
        self.assertIn("package ffmpeg", response["message"])


if __name__ == "__main__":
    unittest.main()
