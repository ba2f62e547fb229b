// Every test program ends with a count that scripts/test adds up; one that ran nothing fails.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const auto& unit = *::testing::UnitTest::GetInstance();
  if (::testing::GTEST_FLAG(list_tests)) return result;
  std::printf("tessera-tests: %d passed, %d failed, %d skipped\n", unit.successful_test_count(),
              unit.failed_test_count(), unit.skipped_test_count());
  if (result == 0 && unit.test_to_run_count() == 0) {
    std::printf("no test was run\n");
    return 1;
  }
  return result;
}
