// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.ModelPart;
import java.nio.file.Files;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

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
}
