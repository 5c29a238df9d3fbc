"""Do what the Dockerfile says where no container can be built, and start what comes of it.

    python -m deploy.image.rehearse FOLDER [--target service|clients] [--command ARG …]

Every stage gets a folder under FOLDER, which must be empty. A RUN sees its stage's folders in their
real places under a root of its own (this needs Linux and root), and /usr of this machine in place
of the base image: Debian's Python 3.11 with pip and venv. In the end the image's command is started
as its user, without rights, everything read-only but /tmp and empty volumes. It ends with the
command's status, and SIGTERM ends the command. A FOLDER that was built before is only started.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from deploy.image.dockerfile import Image, Scope, Stage, Step, expanded, read

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3.11"
PLACES = ("opt", "build", "data", "reports")  # where the Dockerfile puts things
VOLUMES = ("data", "reports")
BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TAKEN_ALONG = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "HTTPS_PROXY", "HTTP_PROXY")


class Rehearsal:
    def __init__(self, folder: Path, stages: dict[str, Stage]) -> None:
        self.folder, self.stages = folder, stages
        self.images: dict[str, Image] = {}
        (folder / "base/bin").mkdir(parents=True)
        (folder / "base/bin/python").symlink_to(PYTHON)

    def tree(self, name: str) -> Path:
        return self.folder / "stages" / name

    def build(self, name: str) -> Image:
        if name in self.images:
            return self.images[name]
        stage = self.stages[name]
        made = Image(environment={"PATH": BASE_PATH})
        if stage.parent in self.stages:
            parent = self.build(stage.parent)
            made = Image(dict(parent.environment), dict(parent.labels), parent.workdir, parent.user)
            made.told = dict(parent.told)
            # cp, because it keeps owners.
            subprocess.run(["cp", "-a", self.tree(stage.parent), self.tree(name)], check=True)
        for place in PLACES:
            (self.tree(name) / place).mkdir(parents=True, exist_ok=True)
        scope = Scope(made, {})
        for step in stage.steps:
            print(f"[{name}] {step.verb} {step.rest[:90]}", flush=True)
            self._do(stage, scope, step)
        self.images[name] = made
        return made

    def _do(self, stage: Stage, scope: Scope, step: Step) -> None:
        scope.follow(step)
        if step.verb == "WORKDIR":
            self._inside(stage.name, scope.made.workdir).mkdir(parents=True, exist_ok=True)
        elif step.verb == "COPY":
            self._copy(stage, scope, step)
        elif step.verb == "RUN":
            along = {name: os.environ[name] for name in TAKEN_ALONG if name in os.environ}
            script = f"cd {scope.made.workdir}\n{step.rest}"
            status = self.run(stage.name, ["sh", "-ec", script], along | scope.variables)
            if status:
                sys.exit(f"{stage.name}: this failed with {status}: {step.rest}")

    def _copy(self, stage: Stage, scope: Scope, step: Step) -> None:
        flags = [word for word in step.rest.split() if word.startswith("--")]
        *sources, target = [
            expanded(word, scope.variables) for word in step.rest.split() if word not in flags
        ]
        options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
        to = self._inside(stage.name, str(Path(scope.made.workdir) / target))
        for source in sources:
            if "from" in options:
                self.build(options["from"])
                shutil.copytree(
                    self._inside(options["from"], source), to, symlinks=True, dirs_exist_ok=True
                )
                continue
            # What git knows: the folder a build gets is a clean one.
            listed = subprocess.check_output(["git", "ls-files", "-z", source], cwd=ROOT)
            for name in filter(None, listed.decode().split("\0")):
                inner = Path(name).relative_to(source)
                place = to / inner if inner.parts else to / Path(name).name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
                place.chmod(int(options.get("chmod", oct(place.stat().st_mode & 0o777)), 8))

    def _inside(self, name: str, path: str) -> Path:
        if Path(path).parts[1] not in (*PLACES, "tmp"):
            sys.exit(f"{path} is in none of the places that are rehearsed: {', '.join(PLACES)}")
        return self.tree(name) / path.lstrip("/")

    def run(
        self, name: str, command: list[str], environment: dict[str, str], user: str = ""
    ) -> int:
        """In a root of its own; with a user, read-only and without any rights."""
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        lines = ["set -e", f"cd {root}", "mount -t tmpfs none .", "cd $PWD", "mkdir tmp"]
        lines += [f"ln -s usr/{link} {link}" for link in ("bin", "sbin", "lib", "lib64")]
        bound = {f"/{place}": place for place in ("usr", "etc", "dev", "proc")}
        bound |= {f"{self.tree(name)}/{place}": place for place in PLACES}
        bound[f"{self.folder}/base/bin"] = "usr/local/bin"
        for source, place in bound.items():
            lines.append(f"mkdir -p {place} && mount --rbind {source} {place}")
            if user and place not in ("dev", "proc"):
                lines.append(f"mount -o remount,bind,ro {place}")
        drop = ""
        if user:
            uid, gid = user.split(":")
            lines.append("mount -t tmpfs -o size=64m,mode=1777 none tmp")
            lines += [f"mount -t tmpfs -o uid={uid},gid={gid} none {place}" for place in VOLUMES]
            lines.append("mount -o remount,ro .")
            drop = (
                f"setpriv --reuid {uid} --regid {gid} --clear-groups --no-new-privs "
                "--inh-caps=-all --bounding-set=-all "
            )
        # exec all the way: a signal reaches the command.
        lines.append(f"exec chroot . {drop}{shlex.join(command)}")
        unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines)]
        return _waited(subprocess.Popen(unshared, env=environment))


def _waited(process: subprocess.Popen[bytes]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # the command got it too


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="service")
    parser.add_argument(
        "--environment", action="append", default=[], metavar="NAME=VALUE", help="of the command"
    )
    parser.add_argument("--command", nargs=argparse.REMAINDER, help="in place of the image's own")
    args = parser.parse_args()
    folder = args.folder.resolve()
    told = folder / f"{args.target}.json"
    rehearsal = None
    if not told.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            sys.exit(f"{folder} is not empty")
        rehearsal = Rehearsal(folder, read(ROOT / "Dockerfile"))
        told.write_text(json.dumps(vars(rehearsal.build(args.target))))
    made = Image(**json.loads(told.read_text()))
    rehearsal = rehearsal or Rehearsal.__new__(Rehearsal)
    rehearsal.folder = folder
    command = made.words("ENTRYPOINT") + (args.command or made.words("CMD"))
    environment = made.environment | dict(one.split("=", 1) for one in args.environment)
    print("starting:", shlex.join(command), "as", made.user, flush=True)
    return rehearsal.run(args.target, command, environment, made.user)


if __name__ == "__main__":
    sys.exit(main())
