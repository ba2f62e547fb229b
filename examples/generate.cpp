// generate MODEL [PROMPT]: loads a model (a folder, a .gguf or a .safetensors file) and streams an answer.
#include <tessera/tessera.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [PROMPT]\n", argv[0]);
    return 2;
  }
  auto model = tessera::Model::load(argv[1]);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  auto generation = model->start(argc > 2 ? argv[2] : "", {.max_tokens = 200, .temperature = 0});
  if (!generation) {
    std::fprintf(stderr, "%s\n", generation.error().message.c_str());
    return 1;
  }
  for (const tessera::Token& token : *generation) {
    std::fwrite(token.text.data(), 1, token.text.size(), stdout);
    std::fflush(stdout);
  }
  std::printf("\n");
  if (!generation->error()) return 0;
  std::fprintf(stderr, "%s\n", generation->error()->message.c_str());
  return 1;
}
