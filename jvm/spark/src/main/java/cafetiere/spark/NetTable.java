// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.NetDescription.Top;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * The table that a net's data layer names, as CaffeOnSpark reads it, or one that the command line
 * names instead; and which of its columns feed the net.
 *
 * @param rows the table
 * @param dataColumn feeds the data layer's first top, unless the layer names the columns itself
 * @param labelColumn feeds its second top, likewise
 * @param idColumn identifies a row, "" if there is none
 */
record NetTable(Dataset<Row> rows, String dataColumn, String labelColumn, String idColumn) {
  private static final List<String> DATA_NAMES = List.of("data", "image", "features");
  private static final List<String> ID_NAMES = List.of("id", "SampleID");

  /** Opens the table of a phase's data layer; {@code flag} may name another one. */
  static NetTable open(SparkSession spark, Flags flags, NetDescription net, String flag) {
    JsonNode layer = net.json().path("data_layer");
    String path = flags.get(flag, layer.path("source").asText(""));
    if (path.isEmpty()) {
      throw new Flags.UsageException("the data layer names no source: pass the table with -" + flag
          + " PATH");
    }
    String sourceClass = layer.path("source_class").asText("");
    if (!flags.has(flag) && sourceClass.matches(".*\\.(LMDB|SeqImageDataSource)")) {
      throw new Flags.UsageException("source_class " + sourceClass + " is not read through Spark:"
          + " store the table as parquet and pass it with -" + flag + " PATH");
    }
    String format = layer.path("dataframe_format").asText("");
    Dataset<Row> rows = spark.read().format(format.isEmpty() ? "parquet" : format).load(path);
    List<String> select = new ArrayList<>();
    layer.path("dataframe_column_select").forEach(expression -> select.add(expression.asText()));
    if (!select.isEmpty()) rows = rows.selectExpr(select.toArray(new String[0]));
    return of(rows, flags, net.tops());
  }

  /** The column that feeds a top of the net's data layer. */
  String column(Top top, int place) {
    return top.columnAt(place, dataColumn, labelColumn);
  }

  private static NetTable of(Dataset<Row> rows, Flags flags, List<Top> tops) {
    List<String> columns = Arrays.asList(rows.columns());
    List<String> dataNames = new ArrayList<>();
    tops.stream().limit(1).forEach(top -> dataNames.add(top.ownColumn()));
    dataNames.addAll(DATA_NAMES);
    List<String> labelNames = new ArrayList<>();
    tops.stream().skip(1).limit(1).forEach(top -> labelNames.add(top.ownColumn()));
    labelNames.add("label");
    String data = flags.has("dataCol") ? flags.get("dataCol", "") : first(dataNames, columns)
        .orElseThrow(() -> new Flags.UsageException("none of the table's columns ("
            + String.join(", ", columns) + ") has one of the names " + String.join(", ", dataNames)
            + ": name the column that feeds the net with -dataCol"));
    String label = flags.get("labelCol", first(labelNames, columns).orElse("label"));
    return new NetTable(rows, data, label, flags.get("idCol", first(ID_NAMES, columns).orElse("")));
  }

  private static Optional<String> first(List<String> wanted, List<String> columns) {
    return wanted.stream().filter(columns::contains).findFirst();
  }
}
