// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.kinds;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import cafetiere.spark.PreflightException;
import java.util.Map;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** Kinds of columns as the engine tells them of a net. */
class ColumnKindsTest {
  private static final String NET = """
      layer { name: 'table' type: 'TableData' top: 'input' top: 'code' top: 'label' table_data_param {
        batch_size: 4
        top { column { name: 'größe "\\' kind: DATE } column { name: 'age' size: 1 }
              column { name: 'born' } column { name: 'born' kind: DATE } }
        top { column { name: 'city' kind: CATEGORY value: 'target: true' value: '}' } }
        top { column { name: 'paid' } target: true } } }
      layer { name: 'score' type: 'InnerProduct' bottom: 'input' top: 'score'
        inner_product_param { num_output: 1 } }
      """;

  @Test
  void kindsAreReadFromANetAndKept() {
    ColumnKinds kinds = ColumnKinds.ofNet(NET.replace("\\", "\\\\"));
    assertEquals(Map.of("größe \"\\", ColumnKind.DATE, "age", ColumnKind.NUMBER, "born", ColumnKind.DATE),
        kinds.kinds());
    assertEquals(kinds, ColumnKinds.ofJson(kinds.json()));
    assertEquals(Map.of(), ColumnKinds.ofJson("").kinds());
  }

  @Test
  void aMessageNamesTheColumnAndBothTypes() {
    ColumnKinds kinds = ColumnKinds.of(Map.of("seen", "TIMESTAMP", "city", "CATEGORY", "age", "NUMBER"));
    kinds.require(new StructType().add("seen", "timestamp_ntz").add("city", "date").add("age", "boolean"));
    assertEquals("column 'seen' is of type bigint, and the net has learned it as a timestamp: cast it to"
        + " timestamp", refusal(kinds, new StructType().add("seen", "bigint").add("age", "decimal(9,2)")));
    assertEquals("column 'age' is of type date, and the net has learned it as a number: cast it to a"
        + " number, as it was in training", refusal(kinds, new StructType().add("age", "date")));
  }

  private static String refusal(ColumnKinds kinds, StructType table) {
    return assertThrows(PreflightException.class, () -> kinds.require(table)).findings().get(0);
  }
}
