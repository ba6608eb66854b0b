package cafetiere.spark;

import cafetiere.core.CafetiereException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/**
 * Checks a sample of labels against the number of classes of the net's softmax loss.
 *
 * @param column the column that feeds the loss's label
 * @param idColumn the column that names a row, "" if there is none
 * @param classes labels are whole numbers from 0 up to and without this one
 * @param ignored the label that the loss passes over; null if there is none
 */
record LabelCheck(String column, String idColumn, long classes, Long ignored) {
  static final int SAMPLE = 1_000;

  private static final Pattern LAYER = Pattern.compile("\\blayers?\\s*\\{");
  private static final Pattern SOFTMAX_LOSS =
      Pattern.compile("\\btype\\s*:\\s*['\"]?(SoftmaxWithLoss|SOFTMAX_LOSS)\\b");
  private static final Pattern BOTTOM = Pattern.compile("\\bbottom\\s*:\\s*['\"]([^'\"]+)['\"]");
  private static final Pattern IGNORED = Pattern.compile("\\bignore_label\\s*:\\s*(-?\\d+)");

  /** The check for a plan; empty if its net has no softmax loss that is fed from a column. */
  static Optional<LabelCheck> of(TrainingPlan plan) {
    String text = plan.net().isEmpty() ? plan.solver() : plan.net();
    for (String layer : LAYER.split(text.replaceAll("#[^\n]*", ""))) {
      if (!SOFTMAX_LOSS.matcher(layer).find()) continue;
      Matcher bottoms = BOTTOM.matcher(layer);
      if (!bottoms.find()) continue;
      String scores = bottoms.group(1);
      if (!bottoms.find()) continue;
      String label = bottoms.group(1);
      Matcher ignored = IGNORED.matcher(layer);
      Long ignoredLabel = ignored.find() ? Long.valueOf(ignored.group(1)) : null;
      long classes = classes(plan, scores);
      Optional<String> column = plan.schema().inputs().stream()
          .filter(input -> input.top().equals(label)).map(FeedSchema.Input::column).findFirst();
      if (classes > 0 && column.isPresent()) {
        String id = plan.schema().idColumn();
        return Optional.of(new LabelCheck(column.get(), id, classes, ignoredLabel));
      }
    }
    return Optional.empty();
  }

  /** What is wrong with the first rows of the table: one sentence on the first bad label. */
  List<String> find(Dataset<Row> table) {
    List<Column> columns = new ArrayList<>(List.of(quoted(column)));
    if (!idColumn.isEmpty()) columns.add(quoted(idColumn));
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

  /** Axis 1 of the blob with the scores. */
  private static long classes(TrainingPlan plan, String blob) {
    try {
      NetDescription net = NetDescription.of(plan.solver(), plan.net(), "TRAIN", plan.threads());
      for (JsonNode entry : net.json().path("blobs")) {
        if (entry.path("name").asText().equals(blob)) return entry.path("shape").path(1).asLong();
      }
    } catch (CafetiereException e) {
      return 0;
    }
    return 0;
  }

  private static Column quoted(String name) {
    return functions.col("`" + name.replace("`", "``") + "`");
  }
}
