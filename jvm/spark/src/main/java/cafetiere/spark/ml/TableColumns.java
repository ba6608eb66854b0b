// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.NearestName;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns that are learned from, the label last, and what each of them holds.
 *
 * @param label the label's column
 * @param fields those columns of the table
 * @param kinds of each, as cft_table_create names them
 * @param schema how their rows are encoded
 */
record TableColumns(String label, List<StructField> fields, List<String> kinds, FeedSchema schema) {
  private static final String NUMBER = "NUMBER";
  private static final String CATEGORY = "CATEGORY";

  /** Those that the params name; a {@link PreflightException} tells all that cannot be used. */
  static TableColumns of(TableParams<?> params, StructType schema, String labelKind) {
    List<String> findings = new ArrayList<>();
    Set<String> names = new LinkedHashSet<>(features(params, schema));
    String label = params.getLabelCol();
    if (names.remove(label)) {
      findings.add("column '" + label + "' is the label, and among the columns to learn from: take it"
          + " out of featuresCols");
    }
    names.add(label);
    Set<String> categories = Set.of(params.getCategoricalCols());
    for (String name : categories) {
      if (!names.contains(name)) {
        findings.add("categoricalCols names '" + name + "', which is no column to learn from"
            + hint(name, names));
      }
    }
    List<StructField> fields = new ArrayList<>();
    List<String> kinds = new ArrayList<>();
    List<FeedSchema.Input> cells = new ArrayList<>();
    for (String name : names) {
      cells.add(new FeedSchema.Input("table", name, true));
      int at = List.of(schema.fieldNames()).indexOf(name);
      if (at < 0) continue;  // FeedSchema tells
      StructField field = schema.fields()[at];
      fields.add(field);
      kinds.add(name.equals(label) ? labelKind : kind(field.dataType(), categories.contains(name)));
      if (name.equals(label)) {
        findLabel(field, labelKind, findings);
      } else if (!isLearned(field.dataType())) {
        findings.add("column '" + name + "' is of type " + field.dataType().catalogString()
            + ", of which nothing can be learned: leave it out of featuresCols, or make numbers of it");
      }
    }
    if (names.size() == 1) findings.add("there is no column to learn from: set featuresCols");
    if (!findings.isEmpty()) throw new PreflightException(findings);
    return new TableColumns(label, List.copyOf(fields), List.copyOf(kinds),
        FeedSchema.of(schema, cells, params.getIdCol()));
  }

  /** The options of cafetiere.core.table.TableStatistics for a table. */
  String options(Dataset<Row> table) {
    ObjectNode options = Json.object();
    options.set("schema", schema.toJson());
    ArrayNode columns = options.putArray("columns");
    for (int i = 0; i < fields.size(); i++) {
      ObjectNode column = columns.addObject();
      column.put("name", fields.get(i).name()).put("kind", kinds.get(i));
      if (!isSeveral(fields.get(i).dataType())) continue;
      boolean anyNumber = kinds.get(i).equals(CATEGORY);
      column.put("size", anyNumber ? 0 : size(table, fields.get(i).name()));
    }
    return options.toString();
  }

  private static List<String> features(TableParams<?> params, StructType schema) {
    if (params.getFeaturesCols().length > 0) return List.of(params.getFeaturesCols());
    List<String> all = new ArrayList<>(List.of(schema.fieldNames()));
    String one = params.getFeaturesCol();
    if (all.contains(one) || params.isSet(params.featuresCol())) return List.of(one);
    all.removeAll(
        List.of(params.getLabelCol(), params.getIdCol(), params.getValidationIndicatorCol()));
    return all;
  }

  private static String kind(DataType type, boolean isCategory) {
    if (type.equals(DataTypes.DateType)) return "DATE";
    if (type.equals(DataTypes.TimestampType)) return "TIMESTAMP";
    if (type.equals(DataTypes.TimestampNTZType)) return "TIMESTAMP";
    DataType one = type instanceof ArrayType array ? array.elementType() : type;
    return isCategory || one.equals(DataTypes.StringType) ? CATEGORY : NUMBER;
  }

  private static void findLabel(StructField field, String labelKind, List<String> findings) {
    DataType type = field.dataType();
    boolean isNumber = type instanceof NumericType || type.equals(DataTypes.BooleanType);
    boolean isClass = isNumber || type.equals(DataTypes.StringType);
    if (labelKind.equals(NUMBER) ? isNumber : isClass) return;
    findings.add("the label '" + field.name() + "' is of type " + type.catalogString() + ": "
        + (labelKind.equals(NUMBER) ? "a regressor learns numbers; cast it, or use CaffeClassifier"
            : "a classifier learns classes that are text or whole numbers; cast it"));
  }

  private static boolean isLearned(DataType type) {
    DataType one = type instanceof ArrayType array ? array.elementType() : type;
    return one instanceof NumericType || type.equals(DataTypes.BooleanType)
        || type.equals(DataTypes.StringType) || !kind(type, false).equals(NUMBER)
        || type.equals(SQLDataTypes.VectorType());
  }

  private static boolean isSeveral(DataType type) {
    return type instanceof ArrayType || type.equals(SQLDataTypes.VectorType());
  }

  /** Numbers in a cell, as in the first one that is there. */
  private static int size(Dataset<Row> table, String name) {
    Column column = functions.col("`" + name.replace("`", "``") + "`");
    List<Row> first = table.select(column).filter(column.isNotNull()).limit(1).collectAsList();
    if (first.isEmpty()) {
      throw new PreflightException(List.of("column '" + name + "' has no value in any row: leave it"
          + " out of featuresCols"));
    }
    Object cell = first.get(0).get(0);
    return Math.max(1, cell instanceof Vector vector ? vector.size() : first.get(0).getList(0).size());
  }

  private static String hint(String name, Set<String> names) {
    return NearestName.of(name, names).map(nearest -> ": did you mean '" + nearest + "'?").orElse("");
  }
}
