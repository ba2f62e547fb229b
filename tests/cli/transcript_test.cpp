// Real models write what they wrote before: greedy, from an empty prompt, the same ids from every file and backend.
// The transcripts (tests/cli/transcripts) are this program's own, checked against the text their makers publish; the
// models are public ones and not part of the repository.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "cli/program.h"

#include <nlohmann/json.hpp>

namespace tessera::test {
namespace {

struct TranscriptCase {
  const char* name;
  const char* transcript;
  std::vector<std::string> models;
  const char* beginning;
};

class Transcript : public ::testing::TestWithParam<TranscriptCase> {};

TEST_P(Transcript, IsTheSameFromEveryFileOnEveryBackend) {
  const TranscriptCase& chosen = GetParam();
  for (const std::string& model : chosen.models)
    if (!file_exists(model)) GTEST_SKIP() << model << " is not here";
  const Result<Json> expected = read_json_file(std::string("tests/cli/transcripts/") + chosen.transcript);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto ids = (*expected)["ids"].get<std::vector<int32_t>>();
  const auto text = (*expected)["text"].get<std::string>();
  ASSERT_EQ(ids.size(), 200u);
  EXPECT_EQ(text.rfind(chosen.beginning, 0), 0u) << text;

  int compared = 0;
  for (const std::string& model : chosen.models) {
    for (const std::string& backend : backend_names()) {
      for (const char* arithmetic : {"", "--exact"}) {
        std::vector<std::string> arguments = {"run", model,          "--backend", backend,  "--temperature",
                                              "0",   "--max-tokens", "200",       "--json", "--ignore-eos"};
        if (*arithmetic != '\0') arguments.emplace_back(arithmetic);
        SCOPED_TRACE(model + " on " + backend + " " + arithmetic);
        const Outcome outcome = run_program(arguments);
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        std::vector<int32_t> found;
        std::string found_text;
        for (const std::string& line : outcome.out_lines()) {
          const Result<Json> json = parse_json(line, "output");
          ASSERT_TRUE(json);
          if (json->contains("id")) found.push_back((*json)["id"].get<int32_t>());
          if (json->contains("text")) found_text += (*json)["text"].get<std::string>();
        }
        EXPECT_EQ(found, ids);
        EXPECT_EQ(found_text, text);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 2 * static_cast<int>(chosen.models.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Cli, Transcript,
    ::testing::Values(
        TranscriptCase{
            "stories260k",
            "stories260k.json",
            {"../shared/models/stories260k", "../shared/models/stories260k/stories260K-f32.gguf"},
            "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."},
        TranscriptCase{
            "tinystories656k", "tinystories-656k.json", {"../shared/models/tinystories-656k"}, ""}),
    [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace tessera::test
