// SPDX-License-Identifier: Apache-2.0
package libs

import java.util.concurrent.ConcurrentHashMap

/** Keeps objects in the JVM of an executor from task to task, by name. A program has it as a value of an
  * `object`, of which each JVM makes its own; what is in it never travels.
  */
class WorkerStore extends java.io.Serializable {
  @transient private lazy val store = new ConcurrentHashMap[String, Any]()

  /** What was put under a name on this JVM.
    *
    * @throws NoSuchElementException if nothing was, as after Spark has replaced the executor
    */
  def get[T](key: String): T = {
    val value = store.get(key)
    if (value == null) throw new NoSuchElementException(s"nothing was put under $key on this JVM")
    value.asInstanceOf[T]
  }

  /** Keeps an object in place of the one before. */
  def put(key: String, value: Any): Unit = {
    store.put(key, value)
    ()
  }
}
