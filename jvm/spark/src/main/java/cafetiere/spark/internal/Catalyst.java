// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.Method;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.List$;

/** Makes nodes of Spark's plans, whose constructors take another Seq in each Scala line. */
public final class Catalyst {
  private Catalyst() {}

  /** A function's value for arguments, which are cast to what it takes. */
  public static Expression call(ScalarFunction<?> function, List<? extends Expression> arguments) {
    try {
      return (Expression) make(ApplyFunctionExpression.class, function, list(arguments));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this version of Spark calls functions in another way (" + e
          + "): use Spark 3.5 or 4.1", e);
    }
  }

  /** What Spark says of a call that the function does not take: an AnalysisException. */
  public static Throwable refusal(UnboundFunction function, List<? extends Expression> arguments,
      UnsupportedOperationException why) {
    try {
      for (Method method : QueryCompilationErrors.class.getMethods()) {
        if (method.getName().equals("functionCannotProcessInputError")) {
          return (Throwable) method.invoke(null, function, list(arguments), why);
        }
      }
    } catch (ReflectiveOperationException e) {
      why.addSuppressed(e);
    }
    return why;
  }

  /** An object of a class with one constructor. */
  static Object make(Class<?> type, Object... arguments) throws ReflectiveOperationException {
    return type.getConstructors()[0].newInstance(arguments);
  }

  /** An immutable list, which is the Seq of either line. */
  static Object list(List<?> elements) {
    scala.collection.immutable.List<Object> list = List$.MODULE$.empty();
    for (int i = elements.size(); i-- > 0;) list = new $colon$colon<>(elements.get(i), list);
    return list;
  }
}
