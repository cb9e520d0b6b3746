"""Archives whose bytes depend on their files alone, and an OCI image layout made of them, without a daemon."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

# Parts of Debian packages that no program reads in an image.
LEFT_OUT = ("usr/share/doc-base", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man",
            "usr/lib/x86_64-linux-gnu/gconv")
USER = 7400


def pack(folder, epoch, prefix="", owner=lambda path: 0):
    """A tar file of a folder, sorted by name, with one time and without names of users."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(folder.rglob("*")):
            path = str(file.relative_to(folder))
            entry = tar.gettarinfo(file, arcname=prefix + path)
            entry.mtime, entry.uname, entry.gname = epoch, "", ""
            entry.uid = entry.gid = owner(path)
            if entry.isreg():
                with file.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    return out.getvalue()


def zipped(data):
    """Compressed, without a time or a name."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0, filename="") as writer:
        writer.write(data)
    return out.getvalue()


def runtime(root, debs):
    """A root file system with nothing but libraries of Debian packages, and one user."""
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for deb in debs:
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True, capture_output=True).stdout
        keep = [f"--exclude=./{path}" for path in LEFT_OUT]
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "--no-same-owner", *keep, "-C", root], check=True,
                       input=files)
        # Scanners of images look here.
        known = root / "var/lib/dpkg/status.d"
        known.mkdir(parents=True, exist_ok=True)
        name = subprocess.run(["dpkg-deb", "--field", deb, "Package"], check=True, capture_output=True,
                              text=True).stdout.strip()
        control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
        (known / name).write_text(control)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/usr/sbin/nologin\n"
                                     f"alpheus:x:{USER}:{USER}::/var/lib/alpheus:/usr/sbin/nologin\n")
    (root / "etc/group").write_text(f"root:x:0:\nalpheus:x:{USER}:\n")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


class Layout:
    """An OCI image layout: https://github.com/opencontainers/image-spec/blob/main/image-layout.md."""

    def __init__(self, folder, epoch):
        self.folder, self.epoch, self.layers = folder, epoch, []
        (folder / "blobs/sha256").mkdir(parents=True)

    def blob(self, kind, data):
        """Writes content under its digest, and describes it."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def layer(self, tar):
        """Adds a layer on top."""
        plain = "sha256:" + hashlib.sha256(tar).hexdigest()
        self.layers.append((self.blob("layer.v1.tar+gzip", zipped(tar)), plain))

    def finish(self, version, created):
        """Writes configuration, manifest and index."""
        config = {
            "architecture": "amd64", "os": "linux", "created": created,
            "config": {
                "User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/alpheus"], "Cmd": ["--help"],
                "Env": ["PATH=/usr/bin", "ALPHEUS_STATE=/var/lib/alpheus/state"], "Volumes": {"/var/lib/alpheus": {}},
                "StopSignal": "SIGTERM",
                "Labels": {"org.opencontainers.image.version": version,
                           "org.opencontainers.image.licenses": "Apache-2.0"},
            },
            "rootfs": {"type": "layers", "diff_ids": [plain for _, plain in self.layers]},
            "history": [{"created": created, "created_by": "deploy/packages/dist.py"} for _ in self.layers],
        }
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": self.blob("config.v1+json", text(config)), "layers": [one for one, _ in self.layers]}
        entry = self.blob("manifest.v1+json", text(manifest))
        entry["annotations"] = {"org.opencontainers.image.ref.name": version}
        (self.folder / "oci-layout").write_bytes(text({"imageLayoutVersion": "1.0.0"}))
        (self.folder / "index.json").write_bytes(text({"schemaVersion": 2, "manifests": [entry]}))


def text(value):
    """JSON whose bytes depend on its value alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def fetch(names, folder):
    """Downloads Debian packages by apt, from the mirror that this machine is set up for."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names], cwd=folder, check=True,
                   env={**os.environ, "LC_ALL": "C"})
    found = sorted(pathlib.Path(folder).glob("*.deb"))
    said = [subprocess.run(["dpkg-deb", "--show", deb], check=True, capture_output=True, text=True).stdout.split()
            for deb in found]
    return found, [tuple(one) for one in said]
