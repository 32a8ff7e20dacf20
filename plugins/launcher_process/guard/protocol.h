// The agreement between the launcher and jobq-guard: the descriptors open at the guard's start, and the texts on the
// descriptors.
#pragma once

namespace jobq::guard {

/// A socket. Each byte is a command. The launcher alone has the other end, so the end of the file means the death of
/// the server.
inline constexpr int kCommands = 3;
/// Write end of a pipe. The guard writes one text at the end, when no process of the worker is left: "exit <code>" or
/// "signal <number>" of the worker's main process, "exec <errno>" if the program could not be started, "chdir <errno>"
/// if the working directory could not be entered, "user <errno>" if the process could not become another user, "refused
/// <errno>" if the guard may not kill the process.
inline constexpr int kStatus = 4;
/// A file in memory with texts, each ended by a NUL: the number of arguments, the working directory, the user, the
/// arguments, and the variables as NAME=VALUE. The user is empty, or the numbers of the user, of the main group and of
/// all groups.
inline constexpr int kLaunch = 5;

/// Command: send SIGTERM to the worker's main process.
inline constexpr char kTerminate = 't';
/// Command: kill all processes of the worker.
inline constexpr char kKill = 'k';

}  // namespace jobq::guard
