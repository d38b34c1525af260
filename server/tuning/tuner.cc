#include "server/tuning/tuner.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "kernels/operand_sizes.h"
#include "kernels/problem_text.h"
#include "server/observe/log.h"
#include "server/tuning/contest.h"

namespace warpline {

Tuner::Tuner(std::unique_ptr<Workbench> workbench, TunedChoices& choices, Settled settled,
             TuningSeries series)
    : workbench_(std::move(workbench)),
      choices_(choices),
      settled_(std::move(settled)),
      series_(std::move(series)),
      thread_([this] { Loop(); }) {}

Tuner::~Tuner() {
  stopping_ = true;
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void Tuner::Offer(const Problem& problem) {
  std::string text = ProblemText(problem);
  if (text.empty() || OutputSize(problem).count == 0) return;
  MutexLock lock(&mutex_);
  if (known_.size() >= kMostProblems || !known_.insert(text).second) return;
  queue_.push_back({problem, std::move(text)});
  ++waiting_;
  series_.waiting.Add(1);
}

void Tuner::Know(const std::string& problem) {
  MutexLock lock(&mutex_);
  known_.insert(problem);
}

std::size_t Tuner::waiting() const {
  MutexLock lock(&mutex_);
  return waiting_;
}

bool Tuner::AwaitIdle(MonotonicTime deadline) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitUntil([this] { return waiting_ == 0; }, deadline);
}

void Tuner::Loop() {
  for (;;) {
    Task task;
    {
      MutexLock lock(&mutex_);
      mutex_.Await([this] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    Settle(task);
    series_.waiting.Add(-1);
    MutexLock lock(&mutex_);
    --waiting_;
  }
}

void Tuner::Settle(const Task& task) {
  if (!workbench_->AwaitQuiet([this] { return stopping_.load(); })) return;
  const auto trial = workbench_->Prepare(task.problem);
  if (trial.ok()) return Compete(task, **trial);
  series_.failed.Add();
  Log("info", "not tuned", {{"problem", task.text}, {"reason", std::string(trial.status().message())}});
}

void Tuner::Compete(const Task& task, Trial& trial) {
  Contest contest(trial.candidates().size());
  while (!contest.settled()) {
    if (!workbench_->AwaitQuiet([this] { return stopping_.load(); })) return;
    const auto seconds = trial.Time(contest.next());
    if (seconds.ok()) {
      if (seconds->has_value()) contest.Took(**seconds);
      continue;
    }
    if (!absl::IsUnimplemented(seconds.status())) {
      Log("warning", "a variant is left out of tuning",
          {{"problem", task.text},
           {"variant", std::string(trial.candidates()[contest.next()])},
           {"reason", std::string(seconds.status().message())}});
    }
    contest.Failed();
  }
  const double untuned_us = contest.Seconds(0) * 1e6;
  if (untuned_us == 0 && trial.candidates().size() > 1) {
    series_.failed.Add();
    return;
  }
  const TunedChoice choice = {.variant = std::string(trial.candidates()[contest.winner()]),
                              .untuned = std::string(trial.candidates()[0]),
                              .us = contest.Seconds(contest.winner()) * 1e6,
                              .untuned_us = untuned_us};
  if (contest.winner() == 0) {
    series_.kept.Add();
  } else {
    series_.changed.Add();
    choices_.Set(task.text, choice.variant);
  }
  if (choice.us == 0) return;  // only one variant runs it, and nothing was timed
  Log("info", "tuned",
      {{"problem", task.text},
       {"variant", choice.variant},
       {"us", absl::StrFormat("%.2f", choice.us)},
       {"untuned", choice.untuned},
       {"untuned_us", absl::StrFormat("%.2f", choice.untuned_us)}});
  settled_(task.text, choice);
}

}  // namespace warpline
