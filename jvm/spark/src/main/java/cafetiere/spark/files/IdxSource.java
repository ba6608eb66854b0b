// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import java.util.Map;
import org.apache.spark.sql.SQLContext;

/** The data source "idx": MNIST's files, and others of their form. */
public final class IdxSource extends PathSource {
  public IdxSource() {
    super("idx");
  }

  @Override
  protected Rows open(SQLContext context, Map<String, String> options) {
    return IdxRows.open(context, options);
  }
}
