// The newest turns stay, as many as fit beside the seed, the marker and the new message. A last turn that does not fit whole
// is shortened.

#include "gen/prune_policy.h"

static prune_policy_string_t text(const char *literal) {
  prune_policy_string_t string;
  prune_policy_string_set(&string, literal);
  return string;
}

void exports_pmk_policy_describe_describe(exports_pmk_policy_describe_borrow_description_t description) {
  prune_policy_string_t name = text("newest-c"), version = text("1.0.0"), about = text("keeps the newest turns");
  pmk_policy_context_method_description_name(description, &name);
  pmk_policy_context_method_description_version(description, &version);
  pmk_policy_context_method_description_about(description, &about);
}

static uint64_t tokens(pmk_policy_context_borrow_transcript_t transcript, uint32_t start, uint32_t end) {
  prune_policy_list_u32_t each;
  pmk_policy_context_method_transcript_tokens(transcript, start, end, &each);
  uint64_t sum = 0;
  for (size_t at = 0; at < each.len; at++) sum += each.ptr[at];
  prune_policy_list_u32_free(&each);
  return sum;
}

static uint8_t origin(pmk_policy_context_borrow_transcript_t transcript, uint32_t index) {
  prune_policy_list_u8_t one;
  pmk_policy_context_method_transcript_origins(transcript, index, index + 1, &one);
  uint8_t code = one.len > 0 ? one.ptr[0] : 0;
  prune_policy_list_u8_free(&one);
  return code;
}

// Where the stored turns end.
static uint32_t stored_end(pmk_policy_context_borrow_transcript_t transcript, uint32_t seed_end) {
  // What came with the new message (origin 7) or was found (10) or recalled (11) for it precedes it and stays.
  uint32_t end = pmk_policy_context_method_transcript_current(transcript);
  for (; end > seed_end; end--) {
    uint8_t code = origin(transcript, end - 1);
    if (code != 7 && code != 10 && code != 11) break;
  }
  return end;
}

// Everything before the last turn goes, and its messages are shortened until the request fits. Whether it does; if not, the
// plan is empty again.
static bool keep_last_turn(pmk_policy_context_borrow_transcript_t transcript, pmk_policy_context_borrow_plan_t plan,
                           uint32_t seed_end, uint32_t last, uint32_t end, uint64_t limit) {
  static const uint32_t lengths[] = {8000, 2000, 500};  // in characters, one after the other
  prune_policy_list_u32_t chars;
  pmk_policy_context_method_transcript_chars(transcript, last, end, &chars);
  bool fits = false;
  for (size_t at = 0; at < sizeof lengths / sizeof *lengths && !fits; at++) {
    // Two thirds stay from the start, where texts state their subject; one from the end, where logs have results.
    uint32_t tail = lengths[at] / 3;
    pmk_policy_context_method_plan_clear(plan);
    if (seed_end < last) pmk_policy_context_method_plan_remove(plan, seed_end, last);
    for (size_t message = 0; message < chars.len; message++)
      if (chars.ptr[message] > lengths[at])
        pmk_policy_context_method_plan_shorten(plan, last + message, lengths[at] - tail, tail);
    fits = pmk_policy_context_method_plan_tokens(plan) <= limit;
  }
  prune_policy_list_u32_free(&chars);
  if (!fits) pmk_policy_context_method_plan_clear(plan);
  return fits;
}

void exports_pmk_policy_prune_prune(exports_pmk_policy_prune_borrow_transcript_t transcript,
                                    exports_pmk_policy_prune_borrow_budget_t budget,
                                    exports_pmk_policy_prune_borrow_plan_t plan) {
  uint64_t limit = pmk_policy_context_method_budget_limit(budget);
  if (pmk_policy_context_method_plan_tokens(plan) <= limit) return;

  uint32_t seed_end = pmk_policy_context_method_transcript_seed_end(transcript);
  uint32_t end = stored_end(transcript, seed_end);
  uint32_t length = pmk_policy_context_method_transcript_length(transcript);
  uint64_t used = pmk_policy_context_method_budget_marker_tokens(budget) + tokens(transcript, 0, seed_end) +
                  tokens(transcript, end, length);

  // Where the turns begin, the newest first.
  prune_policy_list_u32_t cuts;
  pmk_policy_context_method_transcript_cuts(transcript, end, pmk_policy_context_method_transcript_turns(transcript), &cuts);
  uint32_t oldest_kept = end;
  for (size_t at = 0; at < cuts.len; at++) {
    used += tokens(transcript, cuts.ptr[at], oldest_kept);
    if (used > limit) break;
    oldest_kept = cuts.ptr[at];
  }
  bool is_shortened = cuts.len > 0 && oldest_kept == end &&
                      keep_last_turn(transcript, plan, seed_end, cuts.ptr[0], end, limit);
  prune_policy_list_u32_free(&cuts);
  if (!is_shortened && seed_end < oldest_kept) pmk_policy_context_method_plan_remove(plan, seed_end, oldest_kept);
}
