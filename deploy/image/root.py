"""Gather what runs in the image, and nothing else: `root.py ROOT`, in the stage that has built `/opt/forecaster`.

The interpreter with the parts of its library that a service can use, the program, the system's libraries that these
load, with the licence and the record of each package (`/var/lib/dpkg/status.d`, where scanners look), certificates, and
two users. No shell, no package manager.
"""

from __future__ import annotations

import compileall
import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PYTHON = Path(sys.base_prefix)
LIBRARY = f"python{sys.version_info.major}.{sys.version_info.minor}"
PROGRAM = Path("/opt/forecaster")
LEFT_OUT = (
    *("__pycache__", "*.a", "config-*", "site-packages"),
    *("test", "idlelib", "lib2to3", "ensurepip", "distutils", "tkinter", "turtle*", "pydoc_data"),
    *("_test*", "_xx*", "xx*", "_tkinter*", "_curses*", "readline*", "_gdbm*", "_dbm*", "nis*"),
)
"""Parts of the interpreter's library that only building, testing or typing needs."""
RECORDS = Path("/var/lib/dpkg/status.d")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
USERS = {
    "passwd": "root:x:0:0:root:/:/sbin/nologin\nforecaster:x:65532:65532:forecaster:/:/sbin/nologin\n",
    "group": "root:x:0:\nforecaster:x:65532:\n",
    "nsswitch.conf": "hosts: files dns\n",
    "ld.so.conf": "/usr/local/lib\n",
}
ELF = b"\x7fELF"


def gather(root: Path) -> None:
    """Put all files of the image under `root`."""
    copy_interpreter(root)
    shutil.copytree(PROGRAM, under(root, PROGRAM), symlinks=True)
    needed = system_libraries(binaries(root))
    for path in [*needed, CERTIFICATES, Path("/etc/os-release")]:
        copy(path, root)
    copy_records({"ca-certificates", *map(package_of, needed)}, root)
    configure(root)


def copy_interpreter(root: Path) -> None:
    """Copy the interpreter, without symbols for debuggers, its modules compiled: nothing can be written later."""
    for program in (PYTHON / "bin").glob("python*"):
        if "-" not in program.name:
            copy(program, root, follow_symlinks=False)
    for library in (PYTHON / "lib").glob("libpython*"):
        copy(library, root, follow_symlinks=False)
    there = under(root, PYTHON / "lib" / LIBRARY)
    shutil.copytree(PYTHON / "lib" / LIBRARY, there, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    if not compileall.compile_dir(there, quiet=1, stripdir=root, prependdir="/"):
        raise SystemExit(f"{there}: not all of it compiles")
    subprocess.run(["strip", "--strip-unneeded", *binaries(root)], check=True)


def binaries(root: Path) -> list[Path]:
    """All programs and shared libraries under a folder."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if path.open("rb").read(len(ELF)) == ELF]


def system_libraries(files: Iterable[Path]) -> list[Path]:
    """Libraries of the system that the loader takes for these files, by the paths that it names."""
    libraries = set()
    for path in files:
        output = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        if "not found" in output:
            raise SystemExit(f"{path}: a library is not found\n{output}")
        libraries |= set(re.findall(r"(?:=>|^)\s+(/(?:usr/)?lib\S+)", output, re.MULTILINE))
    return sorted(map(Path, libraries))


def package_of(path: Path) -> str:
    """The system's package that a file comes from. Where `/lib` is a link, the record may name either path."""
    for name in (path, path.resolve(), Path(str(path.resolve()).removeprefix("/usr"))):
        output = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False).stdout
        if output:
            return output.split(":")[0]
    raise SystemExit(f"{path}: of no package")


def copy_records(packages: set[str], root: Path) -> None:
    """Copy the system's record of each package, and its licence."""
    for package in sorted(packages):
        output = subprocess.run(["dpkg-query", "--status", package], capture_output=True, text=True, check=True).stdout
        record = under(root, RECORDS / package)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(output, encoding="utf-8")
        copy(Path("/usr/share/doc") / package / "copyright", root)


def configure(root: Path) -> None:
    """Write users, name service and the list of the loader, link certificates to where OpenSSL looks, make /tmp."""
    for name, text in USERS.items():
        (root / "etc" / name).write_text(text, encoding="utf-8")
    expected = ssl.get_default_verify_paths().openssl_cafile
    if Path(expected) != CERTIFICATES:
        under(root, Path(expected)).parent.mkdir(parents=True, exist_ok=True)
        under(root, Path(expected)).symlink_to(CERTIFICATES)
    subprocess.run(["ldconfig", "-X", "-r", root], check=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)


def copy(path: Path, root: Path, *, follow_symlinks: bool = True) -> None:
    """Copy a file to the same place under `root`."""
    target = under(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=follow_symlinks)


def under(root: Path, path: Path) -> Path:
    """Path under `root` at the same place."""
    return root / path.relative_to("/")


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
