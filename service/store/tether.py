"""Runs a command that ends when the process that asked for it ends, however that happens.

Run as a program of its own, because what it does between fork and exec is not safe in a process
with threads: `python -I -S tether.py exec|watch PARENT_PID PID_FD COMMAND...`

- `exec` (Linux): the kernel is asked to send SIGTERM when the parent dies, and this process becomes
  the command. "The parent" is the thread that started us, not its process: that thread must live
  as long as the command should.
- `watch` (elsewhere): this process stays, and ends the command when its standard input, a pipe
  from the parent, is closed.

The command's process id is written to the file PID_FD (-1 for none), which the command inherits:
a lock held on it lasts until both parent and command are gone.
"""

import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def write_pid(pid_fd: int, pid: int) -> None:
    if pid_fd >= 0:
        os.ftruncate(pid_fd, 0)
        os.pwrite(pid_fd, f"{pid}\n".encode(), 0)


def become(parent_pid: int, pid_fd: int, command: list[str]) -> None:
    import ctypes  # not there in every Python that can `watch`

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the parent was gone before its death could be watched")
    write_pid(pid_fd, os.getpid())
    os.execv(command[0], command)


def watch(pid_fd: int, command: list[str]) -> int:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    write_pid(pid_fd, child.pid)

    def end_with_parent() -> None:
        # Unbuffered: a daemon thread inside a buffered read breaks interpreter shutdown.
        os.read(0, 1)
        child.terminate()

    threading.Thread(target=end_with_parent, daemon=True).start()
    return child.wait()


def main() -> int:
    mode, parent_pid, pid_fd, *command = sys.argv[1:]
    if mode == "watch":
        return watch(int(pid_fd), command)
    become(int(parent_pid), int(pid_fd), command)
    return 1


if __name__ == "__main__":
    sys.exit(main())
