// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import scala.reflect.runtime.universe
import scala.tools.reflect.{ToolBox, ToolBoxError}

/** Scala's compiler, for what must or must not compile. */
object Scalac {
  private lazy val box = universe.runtimeMirror(getClass.getClassLoader).mkToolBox()

  /** What the compiler says against a program; None if it compiles. */
  def fault(code: String): Option[String] =
    try {
      box.typecheck(box.parse(code))
      None
    } catch {
      case e: ToolBoxError => Some(e.getMessage)
    }

  /** The value of a program. */
  def run(code: String): Any = box.eval(box.parse(code))
}
