"""Debian packages: `alpheus`, the program, and one for each role, with its unit, its user and its folder.

They are written by `dpkg-deb` over a staged tree. The same tree and the same SOURCE_DATE_EPOCH give the same bytes.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

MAINTAINER = "The Alpheus authors <alpheus@localhost>"

UNIT = """\
# Settings are in /etc/alpheus/{role}.toml. What the process may do is in alpheus-.service.d/10-sandbox.conf.
[Unit]
Description=Alpheus, {summary}
ConditionPathExists=/var/lib/alpheus-{role}/identity/tls.pem

[Service]
User=alpheus-{role}
Group=alpheus-{role}
StateDirectory=alpheus-{role}
{environment}ExecStart=/usr/bin/alpheus --config /etc/alpheus/{role}.toml {command}

[Install]
WantedBy=multi-user.target
"""

POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if ! getent passwd alpheus-{role} >/dev/null; then
        useradd --system --user-group --no-create-home --home-dir /var/lib/alpheus-{role} \\
            --shell /usr/sbin/nologin alpheus-{role}
    fi
    if [ ! -d /var/lib/alpheus-{role} ]; then
        install -d -m 0700 -o alpheus-{role} -g alpheus-{role} /var/lib/alpheus-{role}
    fi
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        systemctl try-restart alpheus-{role}.service
    fi
fi
"""

PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now alpheus-{role}.service
fi
"""

# The user and /var/lib/alpheus-ROLE stay, whatever is removed: keys and ledgers are in no package.
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
"""


def unit(role, given):
    """The unit of a role."""
    environment = given.get("environment")
    lines = f"Environment={environment}\nEnvironmentFile=-/etc/default/alpheus-{role}\n" if environment else ""
    return UNIT.format(role=role, summary=given["summary"], command=given["command"], environment=lines)


def libraries(program):
    """What the program needs of Debian, as `dpkg-shlibdeps` finds it."""
    with tempfile.TemporaryDirectory() as folder:
        debian = pathlib.Path(folder, "debian")
        debian.mkdir()
        (debian / "control").write_text("Source: alpheus\n\nPackage: alpheus\nArchitecture: any\n")
        said = subprocess.run(["dpkg-shlibdeps", "-O", "-e", program], cwd=folder, check=True, capture_output=True,
                              text=True).stdout
    return re.search(r"^shlibs:Depends=(.*)$", said, re.MULTILINE)[1]


def glibc(program):
    """The newest version of glibc that the program names."""
    symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)
    return "{}.{}".format(*max((int(major), int(minor)) for major, minor in versions))


def build(tree, control, scripts, output, epoch):
    """Writes one package of the files in a tree."""
    meta = tree / "DEBIAN"
    meta.mkdir()
    size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file()) // 1024 + 1
    (meta / "control").write_text("".join(f"{key}: {value}\n" for key, value in control.items())
                                  .replace("Description:", f"Installed-Size: {size}\nDescription:"))
    settings = sorted(tree.glob("etc/**/*"))
    if files := [file for file in settings if file.is_file()]:
        (meta / "conffiles").write_text("".join(f"/{file.relative_to(tree)}\n" for file in files))
    for name, text in scripts.items():
        (meta / name).write_text(text)
    plain(tree)
    for name in scripts:
        (meta / name).chmod(0o755)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, output], check=True,
                   stdout=subprocess.DEVNULL, env=environment)
    shutil.rmtree(meta)


def plain(tree):
    """The modes that files of packages have, whatever this user's mask."""
    tree.chmod(0o755)
    for file in tree.rglob("*"):
        runs = file.is_dir() or file.parent.name == "bin"
        file.chmod(0o755 if runs else 0o644)


def control(name, version, summary, depends):
    """What `apt show` prints."""
    return {"Package": name, "Version": version, "Architecture": "amd64", "Maintainer": MAINTAINER,
            "Section": "net", "Priority": "optional", "Depends": depends, "Description": summary}


def program(tree, version, output, epoch):
    """The package of the program, which has no unit, no user and no settings."""
    about = control("alpheus", version, "statistics on personal data without holding it: the program",
                    libraries(tree / "usr/bin/alpheus"))
    build(tree, about, {}, output / f"alpheus_{version}_amd64.deb", epoch)


def role(name, given, version, output, epoch):
    """The package of a role."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        files = {
            f"usr/lib/systemd/system/alpheus-{name}.service": unit(name, given),
            f"etc/alpheus/{name}.toml": "# `alpheus check` says whether this file is valid; docs/operating.md has all settings.\n"
                                        'log = "info"\nlog-format = "json"\n' + given["settings"],
        }
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        about = control(f"alpheus-{name}", version, given["summary"], f"alpheus (= {version}), passwd")
        scripts = {"postinst": POSTINST.format(role=name), "prerm": PRERM.format(role=name), "postrm": POSTRM}
        build(tree, about, scripts, output / f"alpheus-{name}_{version}_amd64.deb", epoch)
