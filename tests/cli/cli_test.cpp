// The program as a user meets it: help, exit codes, messages, output formats, and the answers themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "cli/program.h"
#include "cli/tiny_model.h"

namespace tessera::test {
namespace {

class Cli : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model() = TinyModel().write("good"); }
  static void TearDownTestSuite() { TinyModel::remove_all(); }
  static std::string& model() {
    static std::string path;
    return path;
  }

  static Json parse(const std::string& text) {
    Result<Json> json = parse_json(text, "output");
    EXPECT_TRUE(json) << text;
    return json ? *std::move(json) : Json();
  }

  static std::vector<int32_t> ids_of(const Outcome& outcome) {
    std::vector<int32_t> ids;
    for (const std::string& line : outcome.out_lines()) {
      const Json json = parse(line);
      if (json.contains("id")) ids.push_back(json["id"].get<int32_t>());
    }
    return ids;
  }

  // One line on stderr that says all of `parts`, nothing on stdout, exit code 1.
  static void expect_error(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err_lines().size(), 1u) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("tessera: ", 0), 0u) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
  }

  static void expect_load_error(const TinyModel& model, const std::string& name,
                                const std::vector<std::string>& parts) {
    SCOPED_TRACE(name);
    expect_error({"run", model.write(name), "--max-tokens", "1"}, parts);
  }
};

TEST_F(Cli, HelpNamesEverySubcommand) {
  const Outcome outcome = run_program({"--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const std::string command :
       {"run", "inspect", "tokenize", "template", "bench", "models", "quantize"}) {
    EXPECT_NE(outcome.out.find("\n  " + command + " "), std::string::npos) << command;
    const Outcome help = run_program({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("--"), std::string::npos);
    for (const std::string& line : help.out_lines()) EXPECT_LE(line.size(), 160u) << line;
  }
  const Outcome run = run_program({"run", "--help"});
  for (const char* option :
       {"--prompt", "--max-tokens", "--temperature", "--seed", "--stop", "--threads", "--json"})
    EXPECT_NE(run.out.find(option), std::string::npos) << option;
}

TEST_F(Cli, Version) {
  const Outcome outcome = run_program({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.rfind("tessera ", 0), 0u);
}

TEST_F(Cli, UsageErrorsAreTwoLinesAndExitCode2) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"walk"},
      {"run"},
      {"run", model(), "--walk"},
      {"run", model(), "--max-tokens", "many"},
      {"run", model(), "--backend", "abacus"},
      {"run", model(), "--threads", "0"},
      {"run", model(), "--prompt", "a", "--prompt-file", "b"},
      {"tokenize", model()}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    ASSERT_EQ(outcome.err_lines().size(), 2u) << outcome.err;
    EXPECT_EQ(outcome.err_lines()[1].rfind("try: tessera", 0), 0u) << outcome.err;
  }
}

TEST_F(Cli, StreamsTextAndNothingElseInAPipe) {
  const Outcome plain =
      run_program({"run", model(), "--prompt", "Hello", "--max-tokens", "40", "--ignore-eos"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_EQ(plain.err, "");  // no progress bar, no report
  EXPECT_EQ(plain.out.back(), '\n');
  const Outcome json =
      run_program({"run", model(), "--prompt", "Hello", "--max-tokens", "40", "--ignore-eos", "--json"});
  EXPECT_EQ(json.code, 0);
  std::string text;
  Json last;
  for (const std::string& line : json.out_lines()) {
    last = parse(line);
    if (last.contains("text")) text += last["text"].get<std::string>();
  }
  EXPECT_EQ(text + "\n", plain.out);
  EXPECT_EQ(ids_of(json).size(), 40u);
  EXPECT_EQ(last["finish_reason"], "length");
  EXPECT_EQ(last["prompt_tokens"], 6);
  EXPECT_EQ(last["output_tokens"], 40);
  for (const char* key : {"seed", "load_seconds", "prompt_tokens_per_second", "decode_tokens_per_second"})
    EXPECT_TRUE(last.contains(key)) << key;
}

TEST_F(Cli, StatsGoToStderr) {
  const Outcome outcome = run_program({"run", model(), "--max-tokens", "5", "--stats"});
  EXPECT_EQ(outcome.code, 0);
  ASSERT_EQ(outcome.err_lines().size(), 1u) << outcome.err;
  for (const char* part : {"load ", "prompt 1 tokens", "tokens/s", "seed "})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part;
}

TEST_F(Cli, PrecisionPacksWhileLoading) {
  for (const char* policy : {"q8", "bf16", "q8,head=f16,blk:0=q4"}) {
    const Outcome outcome = run_program({"run", model(), "--precision", policy, "--max-tokens", "3"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Outcome inspect = run_program({"inspect", model(), "--precision", policy});
    EXPECT_NE(inspect.out.find(policy[0] == 'q' ? "Q8_0" : "BF16"), std::string::npos) << inspect.out;
  }
  expect_error({"run", model(), "--precision", "q8,heads=q4"}, {"heads=q4", "unknown group", "gate_up"});
  expect_error({"run", model(), "--precision", "q8,blk:1-2=q4"}, {"blk:1-2=q4", "layers 0 to 1"});
  expect_error({"run", model(), "--precision", "q4_k"}, {"q4_k", "rows of 32 values", "multiple of 256"});
  expect_error({"quantize", model(), "out.gguf", "--to", "q8_0"}, {"expected a .gguf file"});
}

TEST_F(Cli, PromptFromAFile) {
  const std::string path = model() + "/prompt.txt";
  TinyModel::write_text(path, "Hello");
  const Outcome file = run_program({"run", model(), "--prompt-file", path, "--max-tokens", "10"});
  const Outcome text = run_program({"run", model(), "--prompt", "Hello", "--max-tokens", "10"});
  EXPECT_EQ(file.code, 0);
  EXPECT_EQ(file.out, text.out);
  expect_error({"run", model(), "--prompt-file", "no/such/file"}, {"no/such/file"});
}

TEST_F(Cli, BackendsAndThreadsGiveTheSameIds) {
  std::vector<std::vector<int32_t>> greedy;
  std::vector<std::vector<int32_t>> sampled;
  for (const std::string& backend : backend_names()) {
    for (const char* threads : {"1", "2"}) {
      const std::vector<std::string> common = {"run",   model(),     "--prompt",    "Hello",   "--max-tokens",
                                               "60",    "--backend", backend,       "--exact", "--threads",
                                               threads, "--json",    "--ignore-eos"};
      greedy.push_back(ids_of(run_program(common)));
      std::vector<std::string> with_seed = common;
      for (const char* more : {"--seed", "11", "--temperature", "0.8", "--top-p", "0.95"})
        with_seed.emplace_back(more);
      sampled.push_back(ids_of(run_program(with_seed)));
    }
  }
  for (const auto& ids : greedy) EXPECT_EQ(ids, greedy[0]);
  for (const auto& ids : sampled) EXPECT_EQ(ids, sampled[0]);
  EXPECT_EQ(greedy[0].size(), 60u);
  EXPECT_NE(greedy[0], sampled[0]);
}

TEST_F(Cli, TheReportedSeedGivesTheTextAgain) {
  const std::vector<std::string> hot = {"run",           model(), "--max-tokens", "40",
                                        "--temperature", "1.5",   "--json",       "--ignore-eos"};
  const Outcome first = run_program(hot);
  const Outcome second = run_program(hot);
  EXPECT_NE(ids_of(first), ids_of(second));
  std::vector<std::string> again = hot;
  again.emplace_back("--seed");
  again.push_back(parse(first.out_lines().back())["seed"].dump());
  EXPECT_EQ(ids_of(run_program(again)), ids_of(first));
}

TEST_F(Cli, StopStringsEndTheTextBeforeThem) {
  const std::vector<std::string> common = {"run",          model(), "--prompt",    "Hello",
                                           "--max-tokens", "60",    "--ignore-eos"};
  const std::string whole = run_program(common).out;
  ASSERT_GT(whole.size(), 20u);
  const std::string stop = whole.substr(10, 3);  // over several tokens: one character each
  std::vector<std::string> with_stop = common;
  for (const std::string& more : {std::string("--stop"), stop, std::string("--json")})
    with_stop.push_back(more);
  const Outcome outcome = run_program(with_stop);
  std::string text;
  Json last;
  for (const std::string& line : outcome.out_lines()) {
    last = parse(line);
    if (last.contains("text")) text += last["text"].get<std::string>();
  }
  EXPECT_EQ(text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(last["finish_reason"], "stop");
}

TEST_F(Cli, ContextFullIsSaid) {
  const Outcome outcome =
      run_program({"run", model(), "--prompt", "Hello", "--context", "20", "--ignore-eos", "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(ids_of(outcome).size(), 14u);
  EXPECT_EQ(parse(outcome.out_lines().back())["finish_reason"], "context_full");
}

TEST_F(Cli, InterruptEndsCleanly) {
  TinyModel endless;
  endless.config["max_position_embeddings"] = 20000;
  Program program({"run", endless.write("endless"), "--ignore-eos", "--stats", "--json"});
  program.read_until(20);
  program.interrupt();
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(outcome.out.back(), '\n');
  EXPECT_NE(outcome.err.find("cancelled"), std::string::npos) << outcome.err;
}

TEST_F(Cli, Inspect) {
  const Outcome text = run_program({"inspect", model(), "--plan", "--verify"});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"llama", "layers 0 to 1", "attention, 4 heads of 8, 2 for keys and values",
                           "128 bytes a position", "model.embed_tokens.weight", "plan", "looked at"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const Outcome outcome =
      run_program({"inspect", model(), "--json", "--plan", "--verify", "--kv-type", "f32"});
  EXPECT_EQ(outcome.code, 0);
  const Json json = parse(outcome.out);
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["state"][0]["bytes_per_position"],
            2 * 2 * 2 * 8 * 4);  // layers, k and v, heads, width, float32
  EXPECT_EQ(json["tensors"].size(), 20u);
  EXPECT_EQ(json["verification"]["faults"].size(), 0u);
  EXPECT_EQ(json["verification"]["values"], json["parameters"]);
  EXPECT_TRUE(json["plan"].is_string());
  EXPECT_GT(json["memory"]["total"].get<int64_t>(), json["memory"]["weights"].get<int64_t>());
}

TEST_F(Cli, VerifyFindsNanAndInfinity) {
  TinyModel broken;
  broken.tensors["model.layers.1.mlp.up_proj.weight"].values[5 * 32 + 7] = std::nanf("");
  broken.tensors["model.norm.weight"].values[3] = std::numeric_limits<float>::infinity();
  const std::string path = broken.write("nan");
  const Outcome outcome = run_program({"inspect", path, "--verify"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("model.layers.1.mlp.up_proj.weight"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("row 5, column 7"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("1 more tensors"), std::string::npos) << outcome.err;
  const Outcome run = run_program({"run", path, "--max-tokens", "2"});  // no text is made of it
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("nan"), std::string::npos) << run.err;
}

TEST_F(Cli, Tokenize) {
  const Outcome outcome = run_program({"tokenize", model(), "Hi", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse(outcome.out);
  EXPECT_EQ(json["ids"], Json({1, 'H' - ' ' + 3, 'i' - ' ' + 3}));
  EXPECT_EQ(json["pieces"], Json({"<s>", "H", "i"}));
  const Outcome plain = run_program({"tokenize", model(), "Hi", "--no-specials"});
  EXPECT_EQ(plain.out_lines().size(), 2u);
}

TEST_F(Cli, Models) {
  const Outcome text = run_program({"models"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("LlamaForCausalLM"), std::string::npos);
  EXPECT_GE(parse(run_program({"models", "--json"}).out).size(), 6u);
}

TEST_F(Cli, BenchOfRandomWeights) {
  for (const char* format : {"q8_0", "q4_0", "f16", "bf16", "f32"}) {
    const Outcome outcome =
        run_program({"bench", "--random", model() + "/config.json", "--format", format, "--prompt", "16,32",
                     "--decode", "8", "--depth", "20", "--repeat", "1", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Json json = parse(outcome.out);
    EXPECT_EQ(json["prompt"].size(), 2u);
    EXPECT_GT(json["decode"][0]["tokens_per_second"].get<double>(), 0);
    EXPECT_GT(json["copy_bytes_per_second"].get<double>(), 1e8);
  }
  EXPECT_EQ(run_program({"bench", model(), "--repeat", "1", "--decode", "4", "--prompt", "8"}).code, 0);
  expect_error({"bench"}, {"expected a model or --random NAME"});
  expect_error({"bench", "--random", model() + "/config.json", "--format", "q9"}, {"q9", "Q8_0"});
}

TEST_F(Cli, BadFilesAreOneLine) {
  expect_error({"run", "no/such/model"}, {"no/such/model"});
  expect_error({"inspect", "no/such/model.gguf"}, {"no/such/model.gguf"});
  const std::string file = model() + "/empty.gguf";
  TinyModel::write_text(file, "");
  expect_error({"run", file}, {"empty.gguf"});
  TinyModel::write_text(model() + "/notes.txt", "hello");
  expect_error({"run", model() + "/notes.txt"}, {"notes.txt"});

  const std::string folder = TinyModel().write("truncated");
  const auto size = std::filesystem::file_size(folder + "/model.safetensors");
  std::filesystem::resize_file(folder + "/model.safetensors", size - 64);
  expect_error({"run", folder}, {"model.safetensors"});
  TinyModel::write_text(folder + "/config.json", "{\"hidden_size\": ");
  expect_error({"run", folder}, {"config.json"});
}

TEST_F(Cli, BadModelsAreOneLine) {
  TinyModel changed;
  changed.config["architectures"] = {"AbacusForCausalLM"};
  changed.config["model_type"] = "abacus";
  expect_load_error(changed, "architecture", {"config.json", "AbacusForCausalLM", "LlamaForCausalLM"});

  changed = TinyModel();
  changed.tensors.erase("model.layers.1.self_attn.k_proj.weight");
  expect_load_error(changed, "missing", {"layers.1", "k_proj"});

  changed = TinyModel();
  changed.add("model.layers.1.self_attn.surprise.weight", {4, 4}, 1.0f);
  expect_load_error(changed, "left-over", {"model.layers.1.self_attn.surprise.weight"});

  changed = TinyModel();
  changed.add("model.layers.0.mlp.down_proj.weight", {32, 63}, 1.0f);
  expect_load_error(changed, "shape", {"down_proj", "[32, 64]", "[32, 63]"});

  changed = TinyModel();
  changed.config["attn_logit_softcapping"] = 50.0;
  expect_load_error(changed, "foreign-key", {"config.json", "attn_logit_softcapping", "50"});

  changed = TinyModel();
  changed.config["num_attention_heads"] = 5;
  expect_load_error(changed, "heads", {"heads"});

  changed = TinyModel();
  const std::string folder = changed.write("nan-config");
  std::string text = changed.config.dump();
  text.replace(text.find("10000.0"), 7, "NaN");
  TinyModel::write_text(folder + "/config.json", text);
  expect_error({"run", folder}, {"config.json", "rope_theta"});
}

TEST_F(Cli, BadRequestsAreOneLine) {
  expect_error({"run", model(), "--prompt", std::string(200, 'a')}, {"201 tokens", "128"});
  expect_error({"run", model(), "--prompt", std::string(30, 'a'), "--context", "16"}, {"31 tokens", "16"});
  expect_error({"run", model(), "--temperature", "-1"}, {"temperature", "-1"});
  expect_error({"run", model(), "--top-p", "1.5"}, {"top_p", "1.5"});
  expect_error({"run", model(), "--top-k", "-3"}, {"top_k", "-3"});
  expect_error({"run", model(), "--min-p", "2"}, {"min_p", "2"});
  expect_error({"run", model(), "--repetition-penalty", "0"}, {"repetition_penalty", "0"});
  expect_error({"run", model(), "--max-tokens", "-5"}, {"max_tokens", "-5"});
  expect_error({"run", model(), "--stop", ""}, {"stop"});

  TinyModel changed;
  changed.tokenizer["post_processor"] = nullptr;
  changed.config.erase("bos_token_id");
  expect_error({"run", changed.write("no-bos")}, {"the prompt is empty"});
  changed.tokenizer = nullptr;
  expect_error({"run", changed.write("no-tokenizer"), "--prompt", "a"}, {"tokenizer.json"});
}

TEST_F(Cli, IdsBeyondTheEmbeddingAreRefusedWhenTheyAreUsed) {
  TinyModel changed;
  changed.make_tokenizer(110);
  const std::string path = changed.write("more-ids");
  const Outcome fine = run_program({"run", path, "--prompt", "Hello", "--max-tokens", "3"});
  EXPECT_EQ(fine.code, 0);
  ASSERT_EQ(fine.err_lines().size(), 1u) << fine.err;
  EXPECT_EQ(fine.err.rfind("tessera: warning: ", 0), 0u);
  EXPECT_NE(fine.err.find("110 ids"), std::string::npos) << fine.err;
  const Outcome used = run_program({"run", path, "--prompt", "a}", "--max-tokens", "3"});  // '}' is id 96
  EXPECT_EQ(used.code, 1);
  EXPECT_NE(used.err.find("found 96"), std::string::npos) << used.err;
}

TEST_F(Cli, GenerationConfigSaysHowToSample) {
  const std::string folder = TinyModel().write("sampling");
  const std::vector<std::string> run = {"run",    folder,         "--max-tokens", "40",
                                        "--json", "--ignore-eos", "--seed",       "5"};
  const std::vector<int32_t> greedy = ids_of(run_program(run));
  TinyModel::write_text(folder + "/generation_config.json",
                        R"({"do_sample": true, "temperature": 1.2, "top_p": 0.95, "eos_token_id": [2, 40]})");
  EXPECT_NE(ids_of(run_program(run)), greedy);
  std::vector<std::string> cold = run;
  cold.insert(cold.end(), {"--temperature", "0"});
  EXPECT_EQ(ids_of(run_program(cold)), greedy);
  TinyModel::write_text(folder + "/generation_config.json", R"({"do_sample": true, "top_p": 7})");
  expect_error(run, {"generation_config.json", "top_p", "7"});
}

}  // namespace
}  // namespace tessera::test
