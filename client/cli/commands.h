// The commands of the `warpline` program, each of which prints to standard output.
#ifndef WARPLINE_CLIENT_CLI_COMMANDS_H_
#define WARPLINE_CLIENT_CLI_COMMANDS_H_

#include "client/cli/command_line.h"

namespace warpline::client {

void AddTranspose(CommandLine& line);
void AddGemm(CommandLine& line);
void AddReduce(CommandLine& line);
void AddRun(CommandLine& line);
void AddPut(CommandLine& line);
void AddGet(CommandLine& line);
void AddDrop(CommandLine& line);
void AddTensors(CommandLine& line);
void AddInfo(CommandLine& line);
void AddHealth(CommandLine& line);
void AddBench(CommandLine& line);
void AddCompletion(CommandLine& line);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_COMMANDS_H_
