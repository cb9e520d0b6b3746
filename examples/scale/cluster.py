"""Broker, registry and Flink on this machine, each in its own processes, from Maven's artefacts."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from processes import Failed, Processes, answers, free_ports, wait_for

_PATIENCE = 300
_JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
_OPENS = ["--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"]


class Broker:
    """A Kafka broker, which can be killed and restarted with its data."""

    def __init__(self, processes: Processes, jvm: Path) -> None:
        self._log = processes.log("broker")
        classpath = (jvm / "test-broker/target/classpath").read_text().strip()
        self._process = processes.start(
            "broker", [*_JAVA, "-Xmx256m", "-cp", classpath, "alpheus.broker.BrokerOnDemand"], talks=True)
        self.address = self._hear().split()[0]

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the broker did not come up; see {self._log}")
        return line

    def _say(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        self._hear()

    def kill(self) -> None:
        """kill -9 of the broker."""
        self._say("kill")

    def start(self) -> None:
        """Restarts it, and returns once it answers."""
        self._say("start")


class Registry:
    """A schema registry in memory: Apicurio, which speaks the Confluent API."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        jar = next(folder.glob("*-runner.jar"))
        port = free_ports(1)[0]
        log = processes.log("registry")
        processes.start("registry", [*_JAVA, "-Xmx300m", f"-Dquarkus.http.port={port}",
                                     "-Dquarkus.http.host=127.0.0.1", "-jar", str(jar)])
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        wait_for("the registry", lambda: self.subjects() is not None, _PATIENCE, log)

    def subjects(self) -> str | None:
        """The registered schemas as JSON, or None while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, OSError):
            return None


class Flink:
    """A job manager and task managers of two slots. Checkpoints go to a folder."""

    def __init__(self, processes: Processes, jvm: Path, folder: Path, workers: int) -> None:
        self._processes = processes
        self._folder = folder
        self._jar = next((jvm / "flink-job/target").glob("alpheus-flink-job-*.jar"))
        self._classpath = self._with_a_log(jvm)
        self.rest = free_ports(1)[0]
        self._configure()
        self._start("jobmanager", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")
        wait_for("Flink's job manager", lambda: answers(self.rest), _PATIENCE, processes.log("jobmanager"))
        self._numbers = 0
        self.workers = [self.worker() for _ in range(workers)]

    def _with_a_log(self, jvm: Path) -> str:
        """The job's class path, with a logger for warnings, since tests have none."""
        own = (jvm / "flink-job/target/classpath").read_text().strip().split(":")
        loggers = [jar for jar in (jvm / "demo/target/classpath").read_text().strip().split(":")
                   if "slf4j-simple" in jar]
        return ":".join([str(self._jar), *loggers, *(jar for jar in own if "slf4j-nop" not in jar)])

    def _configure(self) -> None:
        rpc, = free_ports(1)
        settings = {
            "jobmanager.rpc.address": "127.0.0.1", "jobmanager.bind-host": "127.0.0.1", "jobmanager.rpc.port": rpc,
            "rest.address": "127.0.0.1", "rest.bind-address": "127.0.0.1", "rest.port": self.rest,
            "taskmanager.host": "127.0.0.1", "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": 4, "parallelism.default": 2, "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.task.heap.size": "256m", "taskmanager.memory.task.off-heap.size": "0",
            "taskmanager.memory.network.min": "64m", "taskmanager.memory.network.max": "64m",
            "taskmanager.memory.managed.size": "16m", "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.framework.off-heap.size": "128m", "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "192m", "taskmanager.memory.jvm-overhead.max": "192m",
            "execution.checkpointing.dir": (self._folder / "checkpoints").as_uri(),
            "execution.checkpointing.savepoint-dir": (self._folder / "savepoints").as_uri(),
            "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": 1000,
            "restart-strategy.fixed-delay.delay": "1 s",
            # A killed task manager is detected soon.
            "heartbeat.interval": 1000, "heartbeat.timeout": 8000,
        }
        conf = self._folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))

    def _start(self, name: str, main: str) -> subprocess.Popen[str]:
        conf = self._folder / "conf"
        return self._processes.start(
            name, [*_JAVA, *_OPENS, "-Xmx400m", "-cp", self._classpath, main, "--configDir", str(conf)])

    def worker(self) -> subprocess.Popen[str]:
        """Starts one more task manager."""
        self._numbers += 1
        return self._start(f"taskmanager-{self._numbers}", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner")

    def kill_one(self) -> None:
        """kill -9 of a task manager."""
        self._processes.kill(self.workers.pop(0))

    def command(self, tools: Path) -> None:
        """Writes the `flink` command of a Flink distribution into a folder. It finds the job's jar by name."""
        java = " ".join([*_JAVA, *_OPENS])
        script = tools / "flink"
        script.write_text(f"""#!/bin/bash
exec env FLINK_CONF_DIR={self._folder / 'conf'} {java} -cp '{self._classpath}' \\
  org.apache.flink.client.cli.CliFrontend "${{@/#alpheus-flink-job-*.jar/{self._jar}}}"
""")
        script.chmod(0o755)
