#include "server/tuning/tuner.h"

#include <chrono>
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
      series_(series),
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
  if (taken_ >= kMaxProblems || !known_.insert(text).second) return;
  ++taken_;
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
    const Outcome outcome = Settle(task);
    MutexLock lock(&mutex_);
    if (outcome == Outcome::kAgain) {
      queue_.push_back(std::move(task));
      continue;
    }
    series_.waiting.Add(-1);
    --waiting_;
  }
}

bool Tuner::AwaitQuiet(MonotonicTime deadline) {
  return workbench_->AwaitQuiet([this] { return stopping_.load(); }, deadline);
}

Tuner::Outcome Tuner::GiveUp(const Task& task, std::string_view reason) {
  series_.failed.Add();
  Log("info", "not tuned", {{"problem", task.text}, {"reason", std::string(reason)}});
  return Outcome::kSettled;
}

Tuner::Outcome Tuner::Settle(const Task& task) {
  if (!AwaitQuiet(kNever)) return Outcome::kAgain;
  const auto trial = workbench_->Prepare(task.problem);
  if (trial.ok()) return Compete(task, **trial);
  return GiveUp(task, std::string(trial.status().message()));
}

Tuner::Outcome Tuner::Compete(const Task& task, Trial& trial) {
  // A trial holds memory of the device. While others are busy there, it is better given back.
  constexpr auto kPatience = std::chrono::seconds(2);
  Contest contest(trial.candidates().size());
  while (!contest.settled()) {
    if (!AwaitQuiet(MonotonicClock::now() + kPatience)) return Outcome::kAgain;
    const auto seconds = trial.Time(contest.next());
    if (seconds.ok()) {
      if (seconds->has_value()) contest.Took(**seconds);
      continue;
    }
    const std::string reason(seconds.status().message());
    const bool is_its_own = absl::IsUnimplemented(seconds.status()) || absl::IsDataLoss(seconds.status());
    // Others cannot be compared with what runs untuned, and what ails the device is nobody's fault.
    if (!is_its_own || contest.next() == 0) return GiveUp(task, reason);
    if (absl::IsDataLoss(seconds.status())) {
      Log("warning", "a variant is left out of tuning",
          {{"problem", task.text},
           {"variant", std::string(trial.candidates()[contest.next()])},
           {"reason", reason}});
    }
    contest.Failed();
  }
  const TunedChoice choice = {.variant = std::string(trial.candidates()[contest.winner()]),
                              .untuned = std::string(trial.candidates()[0]),
                              .us = contest.Seconds(contest.winner()) * 1e6,
                              .untuned_us = contest.Seconds(0) * 1e6};
  if (contest.winner() == 0) {
    series_.kept.Add();
  } else {
    series_.changed.Add();
    choices_.Set(task.text, choice.variant);
  }
  if (choice.us == 0) {
    Log("info", "not tuned", {{"problem", task.text}, {"reason", "only " + choice.untuned + " runs it"}});
    return Outcome::kSettled;
  }
  Log("info", "tuned",
      {{"problem", task.text},
       {"variant", choice.variant},
       {"us", absl::StrFormat("%.2f", choice.us)},
       {"untuned", choice.untuned},
       {"untuned_us", absl::StrFormat("%.2f", choice.untuned_us)}});
  settled_(task.text, choice);
  return Outcome::kSettled;
}

}  // namespace warpline
