#include "arch/load.h"

#include <fmt/format.h>

namespace tessera {

Result<LoadedSpec> load_spec(const Config& config, Strictness strictness, const Checkpoint* checkpoint) {
  LoadedSpec loaded;
  TESSERA_TRY(loaded.architecture, find_architecture(config));
  ConfigReader reader(config, checkpoint);
  loaded.spec.architecture = loaded.architecture->family;
  const bool gguf = config.source() == ConfigSource::kGguf;
  loaded.dialect = gguf ? loaded.architecture->gguf : loaded.architecture->hf;
  const bool converted = checkpoint != nullptr && (checkpoint->kind() == CheckpointKind::kMlx ||
                                                   checkpoint->kind() == CheckpointKind::kMlc);
  if (converted) {
    const std::vector<DialectRow>& rows = loaded.architecture->converted;
    loaded.dialect.rows.insert(loaded.dialect.rows.begin(), rows.begin(), rows.end());
  }
  loaded.architecture->build(reader, loaded.spec, loaded.dialect);
  TESSERA_TRY(const std::vector<std::string> unknown, reader.finish());
  if (const Status status = validate_spec(loaded.spec); !status)
    return with_context(status.error(), config.file());
  loaded.defaults = reader.defaults();
  loaded.default_sizes = reader.default_sizes();
  if (!unknown.empty()) {
    const std::string keys = fmt::format("{}", fmt::join(unknown, ", "));
    if (strictness == Strictness::kStrict)
      return fail(ErrorCode::kUnsupported, "{}: unknown keys: {}", config.file(), keys);
    loaded.warnings.push_back(fmt::format("{}: keys that no architecture reads: {}", config.file(), keys));
  }
  return loaded;
}

Result<LoadedModel> load_model(std::shared_ptr<const Checkpoint> checkpoint, const Config& config,
                               Strictness strictness) {
  TESSERA_TRY(LoadedSpec spec, load_spec(config, strictness, checkpoint.get()));
  LoadedModel model;
  model.architecture = spec.architecture;
  model.spec = std::move(spec.spec);
  model.defaults = std::move(spec.defaults);
  model.warnings = std::move(spec.warnings);
  const bool gguf = checkpoint->kind() == CheckpointKind::kGguf;
  const Dialect& common = gguf                                         ? gguf_dialect()
                          : checkpoint->kind() == CheckpointKind::kMlc ? mlc_dialect()
                                                                       : hf_dialect();
  auto weights = bind_weights(model.spec, checkpoint, spec.dialect, common);
  if (!weights && gguf && !spec.default_sizes.empty()) {
    // A wrong shape there is most often a size that the converter did not write.
    Error error = weights.error();
    error.message += fmt::format("; sizes that the file does not say were taken as: {}",
                                 fmt::join(spec.default_sizes, ", "));
    return Failure(std::move(error));
  }
  if (!weights) return Failure(weights.error());
  model.weights = *std::move(weights);
  model.checkpoint = std::move(checkpoint);
  return model;
}

Result<LoadedModel> load_model(std::shared_ptr<const Checkpoint> checkpoint, Strictness strictness) {
  TESSERA_TRY(const Config config, Config::from_checkpoint(*checkpoint));
  return load_model(std::move(checkpoint), config, strictness);
}

}  // namespace tessera
