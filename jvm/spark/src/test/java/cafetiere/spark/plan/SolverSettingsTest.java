// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.CaffeEstimator;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the sync params tell the engine. */
class SolverSettingsTest {
  @TempDir Path dir;

  @Test
  void nothingGivenLeavesTheSolversWords() {
    assertEquals("", text(new CaffeEstimator()));
    assertEquals("", settings(new CaffeEstimator()).fields());
  }

  @Test
  void fieldsOfTheSolverAreReplaced() {
    assertEquals("type: \"Adam\"\nbase_lr: 0.01\nmomentum: 0.0\nweight_decay: 0.0\n"
        + "lr_policy: \"poly\" power: 1\nbatch_size: 32", settings(new CaffeEstimator()
            .setOptimizer("Adam").setBaseLr(0.01).setMomentum(0).setWeightDecay(0)
            .setLrSchedule("linear").setBatchSize(32)).fields());
  }

  @Test
  void onlyWhatIsGivenIsTold() {
    assertEquals("mode: \"average\"\nperiod: 20", text(new CaffeEstimator()
        .setSyncMode("average").setSyncPeriod(20)));
    assertEquals("history: \"reset\"\nwire: 'bfloat16'", text(new CaffeEstimator()
        .setSyncHistory("reset").setSyncOptions(" wire: 'bfloat16' ")));
  }

  @Test
  void aWordCannotBecomeAnotherField() {
    assertThrows(IllegalArgumentException.class,
        () -> new CaffeEstimator().setSyncMode("easgd\" period: \"1"));
  }

  @Test
  void deepSparksFileIsReadAsItIs() throws IOException {
    String file = "period: 50\nmoving_rate: 0.1\n";
    String path = Files.writeString(dir.resolve("param.prototxt"), file).toUri().toString();
    assertEquals(new SolverSettings("", "mode: \"average\"", file),
        settings(new CaffeEstimator().setSyncParamFile(path).setSyncMode("average")));
  }

  @Test
  void aFileThatIsNotThereIsNamed() {
    String path = dir.resolve("nowhere").toUri().toString();
    String message = assertThrows(UncheckedIOException.class,
        () -> text(new CaffeEstimator().setSyncParamFile(path))).getMessage();
    assertTrue(message.contains(path), message);
  }

  private static String text(CaffeEstimator estimator) {
    return settings(estimator).sync();
  }

  private static SolverSettings settings(CaffeEstimator estimator) {
    return SolverSettings.of(estimator, new Configuration());
  }
}
