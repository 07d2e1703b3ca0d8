import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { Rooms } from "./rooms.jsx";

function App() {
  const [isShown, setShown] = useState(true);
  return (
    <main>
      {isShown && <Rooms />}
      <button onClick={() => setShown(!isShown)}>{isShown ? "Hide" : "Show"}</button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
