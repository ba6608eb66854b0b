// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The catalog of the function {@code predict}. With the conf {@code spark.sql.catalog.cafetiere} =
 * {@code cafetiere.spark.sql.Functions}, which a running session takes too:
 *
 * <pre>SELECT id, cafetiere.predict('hdfs:/models/lenet', features) FROM digits</pre>
 */
public final class Functions implements FunctionCatalog {
  private static final String PREDICT = "predict";
  private String name = "cafetiere";

  /** Made by Spark. */
  public Functions() {}

  @Override
  public void initialize(String given, CaseInsensitiveStringMap options) {
    name = given;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return namespace.length == 0
        ? new Identifier[] {Identifier.of(namespace, PREDICT)} : new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    if (function.namespace().length > 0 || !function.name().equalsIgnoreCase(PREDICT)) {
      throw new NoSuchFunctionException(function);
    }
    return new PredictFunction();
  }
}
