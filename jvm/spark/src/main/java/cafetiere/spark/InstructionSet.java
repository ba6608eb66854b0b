package cafetiere.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Names what a processor can do, as far as it changes the order in which sums are formed. */
final class InstructionSet {
  private static final List<String> BEST_FIRST =
      List.of("amx_bf16", "avx512_bf16", "avx512_vnni", "avx512f", "avx2");

  private InstructionSet() {}

  /** The best set of this machine; its architecture where the processor's flags are unknown. */
  static String here() {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/cpuinfo"))) {
        if (!line.startsWith("flags")) continue;
        List<String> flags = Arrays.asList(line.split("\\s+"));
        return BEST_FIRST.stream().filter(flags::contains).findFirst().orElse("x86-64");
      }
    } catch (IOException e) {
      // Without the file the architecture has to do.
    }
    return System.getProperty("os.arch");
  }
}
