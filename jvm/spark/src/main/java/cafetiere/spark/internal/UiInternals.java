// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils$;
import scala.Function0;
import scala.Option;
import scala.xml.Unparsed;

/**
 * What pages of Spark's UI need and have servlets in its types, of which Spark's lines have different
 * ones: it is found by name.
 */
public final class UiInternals {
  private UiInternals() {}

  /** A request's parameter, which Spark has escaped for HTML; null if it has none. */
  public static String parameter(Object request, String name) {
    try {
      return (String) request.getClass().getMethod("getParameter", String.class)
          .invoke(request, name);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this Spark's requests have no parameters", e);
    }
  }

  /** A page of HTML with Spark's header. */
  public static String page(Object request, String title, String html, SparkUITab tab) {
    Method header = Arrays.stream(UIUtils$.class.getMethods())
        .filter(method -> method.getName().equals("headerSparkPage")).findFirst().orElseThrow();
    Function0<Object> content = () -> new Unparsed(html);
    try {
      return "<!DOCTYPE html>" + header.invoke(UIUtils$.MODULE$, request, title, content, tab,
          Option.empty(), false, false);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("cannot draw the page", e.getCause());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("cannot draw the page", e);
    }
  }
}
