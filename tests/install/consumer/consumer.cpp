// Uses the installed library: loads the model named by the argument and continues three ids twice. Fails when
// that does not work, or when the two answers differ.
#include <tessera/tessera.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto model = tessera::Model::load(argv[1]);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  const std::vector<int32_t> prompt = {1, 2, 3};
  const tessera::GenerateOptions options = {
      .max_tokens = 8, .temperature = 0.0, .ignore_end_of_sequence = true};
  std::vector<int32_t> first;
  for (int time = 0; time < 2; ++time) {
    auto answer = model->generate(prompt, options);
    if (!answer) {
      std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      return 1;
    }
    if (time == 0) first = answer->ids;
    if (answer->ids.size() != 8 || answer->ids != first) return 1;
  }
  std::printf("tessera %.*s: %zu ids\n", static_cast<int>(tessera::version().size()),
              tessera::version().data(), first.size());
  return 0;
}
