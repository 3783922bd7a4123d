// The newest turns stay, as many as fit beside the seed, the marker and the new message.

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
  prune_policy_list_u32_free(&cuts);
  if (seed_end < oldest_kept) pmk_policy_context_method_plan_remove(plan, seed_end, oldest_kept);
}
