// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.plan.NetDescription;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Checks a sample of labels against the number of classes that the net scores.
 *
 * @param column the column that feeds the labels
 * @param idColumn the column that names a row, "" if there is none
 * @param classes labels are whole numbers from 0 up to and without this one
 * @param ignored the label that is passed over; null if there is none
 */
record LabelCheck(String column, String idColumn, long classes, Long ignored) {
  static final int SAMPLE = 1_000;

  /** The check for a plan; empty if its net compares no column with the scores of classes. */
  static Optional<LabelCheck> of(NetDescription net, FeedSchema schema) {
    for (JsonNode top : net.json().path("data_layer").path("tops")) {
      long classes = top.path("classes").asLong();
      Optional<String> column = schema.column(top.path("name").asText());
      if (classes > 0 && column.isPresent()) {
        Long ignored = top.has("ignore_label") ? top.path("ignore_label").asLong() : null;
        return Optional.of(new LabelCheck(column.get(), schema.idColumn(), classes, ignored));
      }
    }
    return Optional.empty();
  }

  /** What is wrong with the first rows of the table: one sentence on the first bad label. */
  List<String> find(Dataset<Row> table) {
    List<Column> columns = new ArrayList<>(List.of(NamedColumn.of(column)));
    if (!idColumn.isEmpty()) columns.add(NamedColumn.of(idColumn));
    List<Row> rows =
        table.select(columns.toArray(new Column[0])).limit(SAMPLE).collectAsList();
    if (rows.isEmpty()) {
      return List.of("the table has no rows: nothing can be learned from it; check the filter or"
          + " the path it comes from");
    }
    for (int i = 0; i < rows.size(); i++) {
      if (!isGood(rows.get(i).get(0))) return List.of(sentence(rows.get(i), i));
    }
    return List.of();
  }

  /** Where these are bad rows as others are. */
  Dataset<Row> withoutNulls(Dataset<Row> table) {
    return table.filter(NamedColumn.of(column).isNotNull());
  }

  private boolean isGood(Object value) {
    if (value instanceof Number || value instanceof String) {
      try {
        double label = Double.parseDouble(value.toString());
        boolean whole = label == Math.rint(label);
        boolean passedOver = ignored != null && label == ignored;
        return whole && (passedOver || label >= 0 && label < classes);
      } catch (NumberFormatException e) {
        return false;
      }
    }
    // Arrays and vectors hold a label for each position; the first pass checks those.
    return value != null;
  }

  private String sentence(Row row, int position) {
    String name = idColumn.isEmpty() ? "row " + position : "the row with id " + row.get(1);
    return "column '" + column + "' of " + name + " holds " + row.get(0) + ", and the net's labels"
        + " are the whole numbers from 0 to " + (classes - 1)
        + ": correct the label, or the num_output of the last layer";
  }
}
