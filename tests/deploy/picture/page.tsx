// The page whose picture is taken: the dashboard in its grid, with Grafana's dark theme. What the test checks is left in
// the page as JSON.
import { createTheme, ThemeContext } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome } from '@grafana/ui';
import { Component, ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';
import './page.css';
import { PanelBody, timeRange } from './panels';
import { Panel, Picture } from './picture';
import { errors, leaveReport } from './report';

// Grafana's own grid: 24 columns, rows of 30 px, 8 px between panels.
const COLUMNS = 24;
const ROW_HEIGHT = 30;
const GAP = 8;

function place({ x, y, w, h }: Panel['gridPos'], width: number) {
  const column = (width - GAP * (COLUMNS - 1)) / COLUMNS;
  return {
    left: Math.round(x * (column + GAP)), top: y * (ROW_HEIGHT + GAP),
    width: Math.round(w * column + (w - 1) * GAP), height: h * ROW_HEIGHT + (h - 1) * GAP,
  };
}

// An error in one panel is that panel's, and is told to the test.
class Fence extends Component<{ name: string; children: ReactNode }> {
  state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  componentDidCatch(error: Error) {
    errors.push(`${this.props.name}: ${error.message}`);
  }

  render() {
    return this.state.failed ? null : this.props.children;
  }
}

function Row({ title }: { title: string }) {
  return <h2 className="board-row"><Icon name="angle-down" size="lg" /> {title}</h2>;
}

function Header({ picture }: { picture: Picture }) {
  const { from, to } = timeRange(picture);
  const variables = picture.dashboard.templating.list;
  return (
    <header>
      <h1>{picture.dashboard.title}</h1>
      {variables.map(({ name, label, type }) => (
        <span className="variable" key={name}>
          <label>{label}</label>
          <b>{type === 'datasource' ? 'Prometheus' : 'All'}<Icon name="angle-down" /></b>
        </span>
      ))}
      <span className="range">
        <Icon name="clock-nine" /> {from.utc().format('YYYY-MM-DD HH:mm:ss')} to {to.utc().format('HH:mm:ss')} UTC
      </span>
    </header>
  );
}

function Board({ picture, width }: { picture: Picture; width: number }) {
  return (
    <div className="board">
      {picture.dashboard.panels.map((panel) => {
        const at = place(panel.gridPos, width);
        return (
          <div key={panel.id} id={`panel-${panel.id}`} style={{ position: 'absolute', ...at }}>
            {panel.type === 'row' ? <Row title={panel.title} /> : (
              <PanelChrome
                title={panel.title} description={panel.description} width={at.width} height={at.height}
                padding={panel.type === 'stat' ? 'none' : 'md'}
              >
                {(innerWidth, innerHeight) => (
                  <Fence name={panel.title}>
                    <PanelBody panel={panel} picture={picture} width={innerWidth} height={innerHeight} />
                  </Fence>
                )}
              </PanelChrome>
            )}
          </div>
        );
      })}
    </div>
  );
}

async function main() {
  const picture: Picture = await (await fetch('picture.json')).json();
  // Charts measure their text, so that the font has to be there first.
  await Promise.all([document.fonts.load('12px Inter'), document.fonts.load('500 14px Inter')]);
  const theme = createTheme({ colors: { mode: 'dark' } });
  document.body.style.background = theme.colors.background.canvas;
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Header picture={picture} />
      <Board picture={picture} width={document.documentElement.clientWidth - 32} />
    </ThemeContext.Provider>,
  );
  await leaveReport(picture);
}

main().catch((error) => errors.push(String(error)));
