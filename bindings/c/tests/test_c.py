"""The library, as C and C++ use it: vectors, misuse, the README, memory checkers, and what is exported."""

import json
import pathlib
import re
import tempfile
import unittest

import support
from support import ALPHEUS, BUILD, HERE, PREFIX, ROOT, compiled, said

VECTORS = ROOT / "vectors"
CPP = ("g++", "-std=c++17")


def setUpModule():
    support.prepare()


class Conformance(unittest.TestCase):
    def test_vectors_misuse_and_memory(self):
        """As compiled, under the address and undefined-behaviour sanitizers, and under valgrind."""
        for name in ("conformance", "misuse"):
            plain = compiled(name, [f"{name}.c"], known=True)
            with self.subTest(name, of="plain"):
                print(name, said(plain, VECTORS).strip())
            with self.subTest(name, of="sanitizers"):
                sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
                said(compiled(f"{name}_sanitized", [f"{name}.c"], known=True, more=sanitized), VECTORS)
            with self.subTest(name, of="valgrind"):
                checks = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible", "--quiet"]
                said("valgrind", *checks, plain, VECTORS)


class Readme(unittest.TestCase):
    def frames(self, compiler):
        """The frames of the first event, each with its kind."""
        sources = ["first_event.c", "readme_first.c"]
        program = compiled(f"first_{compiler[0]}", sources, compiler=compiler)
        with tempfile.TemporaryDirectory() as folder:
            said(program, pathlib.Path(folder, "frames"))
            return pathlib.Path(folder, "frames").read_bytes()

    def test_the_first_event_is_encrypted_in_c_and_in_cpp(self):
        for compiler in (("gcc", "-std=c11"), CPP):
            frames = self.frames(compiler)
            # An opening, an event of nine words, a closing border.
            self.assertEqual((frames[0], frames[33], len(frames)), (0x10, 0x11, 33 + 25 + 8 * 9 + 41))
            self.assertNotEqual(frames, self.frames(compiler))

    def test_its_function_has_twenty_lines_or_so(self):
        code = support.blocks()["first"].split("FILE *out) {\n")[1]
        self.assertLessEqual(code.count("\n"), 26)

    def test_every_block_compiles_in_c_and_in_cpp(self):
        for name in support.blocks():
            for compiler in (("gcc", "-std=c11", "-pedantic"), (*CPP, "-x", "c++")):
                said(*compiler, *support.WARNINGS, *support.flags("--cflags"), "-c", "-o", BUILD / "block.o", BUILD / f"readme_{name}.c")


class Library(unittest.TestCase):
    def declared(self):
        return set(re.findall(r"\b(alpheus_\w+)\(", re.sub(r"/\*.*?\*/", "", (HERE.parent / "include/alpheus.h").read_text(), flags=re.DOTALL)))

    def test_it_exports_what_the_header_declares(self):
        symbols = said("nm", "--dynamic", "--defined-only", PREFIX / "lib/libalpheus.so")
        self.assertEqual(set(re.findall(r" T (\w+)", symbols)), self.declared())

    def test_the_static_library_links_too(self):
        sources = [HERE / "first_event.c", BUILD / "readme_first.c"]
        program = BUILD / "first_static"
        said("gcc", "-std=c11", *support.WARNINGS, *support.flags("--cflags"), "-o", program, *sources,
             PREFIX / "lib/libalpheus.a", *support.SYSTEM)
        said(program, BUILD / "frames")
        self.assertNotIn("libalpheus", said("ldd", program))

    def test_it_needs_the_system_alone(self):
        needed = set(re.findall(r"(\S+)\.so", said("ldd", PREFIX / "lib/libalpheus.so")))
        self.assertEqual({pathlib.Path(name).name for name in needed} - {"linux-vdso", "libgcc_s", "libc", "libm", "libdl", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}, set())

    def test_codes_are_ids_of_the_product(self):
        header = (HERE.parent / "include/alpheus.h").read_text()
        known = {each["id"] for each in json.loads(said(ALPHEUS, "errors", "--format", "json"))}
        source = (ROOT / "bindings/c/src/codes.rs").read_text()
        ids = dict(re.findall(r"(ALPHEUS_\w+), c\"([a-z-]+)\"", source))
        for name, number in re.findall(r"#define (ALPHEUS_\w+) (\d+)$", header, re.MULTILINE):
            if name in ids and 0 < int(number) < 100:
                self.assertIn(ids[name], known)
                self.assertEqual(name, "ALPHEUS_" + ids[name].upper().replace("-", "_"))
        self.assertGreater(len(ids), 15)


if __name__ == "__main__":
    unittest.main()
