// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class OutputsTest {
  @Test
  void aPredictionIsThePlaceOfTheLargestValue() {
    assertEquals(1, Outputs.prediction(new float[] {0, 3, 3}));
    assertEquals(-2, Outputs.prediction(new float[] {-2}));
    assertEquals(Double.NaN, Outputs.prediction(new float[] {Float.NaN, 1}));
    assertEquals(Double.NaN, Outputs.prediction(new float[] {1, Float.NaN}));
  }
}
