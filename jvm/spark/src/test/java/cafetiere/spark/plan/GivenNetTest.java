// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.ModelPart;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The layers and weights that the param net names. */
class GivenNetTest {
  @Test
  void weightsOfAnOnnxFileThatExecutorsWouldNotReachAreRefused() throws Exception {
    SparkSession spark = TestImages.session();
    String file = HadoopFiles.ofLocal(
        TestImages.examplePath("../docs/tutorials/shapes.onnx").toAbsolutePath().normalize());
    long bytes;
    try (GivenNet given = GivenNet.of(file, spark)) {
      bytes = Files.size(given.file());
      assertFalse(ModelPart.read(given.weights(), spark).isFile());
    }
    spark.conf().set(ModelPart.LARGEST, bytes - 1 + "b");
    try {
      String told = assertThrows(PreflightException.class, () -> GivenNet.of(file, spark)).getMessage();
      assertEquals("net is " + file + ", whose weights have " + bytes
          + " bytes, more than spark.cafetiere.largestModel: raise it", told);
      spark.conf().set(ModelPart.LARGEST, bytes + "b");
      try (GivenNet given = GivenNet.of(file, spark)) {
        assertTrue(given.net().contains("layer"), given.net());
      }
    } finally {
      spark.conf().unset(ModelPart.LARGEST);
    }
  }

  @Test
  void aFileThatIsNoModelIsNamed(@TempDir Path dir) throws Exception {
    String file = HadoopFiles.ofLocal(Files.writeString(dir.resolve("net.onnx"), "no model"));
    SparkSession spark = TestImages.session();
    String told = assertThrows(CafetiereException.class, () -> GivenNet.of(file, spark)).getMessage();
    assertTrue(told.startsWith(file + ": is not an ONNX model"), told);
  }
}
